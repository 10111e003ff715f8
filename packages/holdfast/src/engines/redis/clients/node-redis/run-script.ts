import { WHICH_CONNECTION, waitReplicas } from "../../sending/wait-replicas.js";
import type { ReplicaWait, ScriptRef } from "../connection.js";
import type { CommandSender } from "./node-redis-client.js";

// By default node-redis makes an AbortSignal for every command. It takes most of the client's time
// and covers only commands that were not sent yet; the core has its own deadline. typeMapping is
// empty, because our answers must not be read with the types that the user's program has chosen for
// its own.
export const COMMAND_OPTIONS = { timeout: undefined, typeMapping: {} };

/** EVALSHA, or EVAL where the text is given, as a command. */
export function scriptCommand(script: ScriptRef, keys: string[], args: string[]): string[] {
  const head = "sha" in script ? ["EVALSHA", script.sha] : ["EVAL", script.text];
  return head.concat(String(keys.length), keys, args);
}

/** Sends the script and then WAIT, on one connection. */
export const runScriptThenWait = (
  node: CommandSender,
  command: string[],
  { replicas, timeoutMs }: ReplicaWait,
) =>
  waitReplicas([
    node.sendCommand(WHICH_CONNECTION),
    node.sendCommand(command),
    node.sendCommand(["WAIT", String(replicas), String(timeoutMs)]),
    node.sendCommand(WHICH_CONNECTION),
  ]);

/** Sends SCAN to one node. */
export const scanner = (node: CommandSender) => (args: readonly string[]) =>
  node.sendCommand(["SCAN", ...args]);
