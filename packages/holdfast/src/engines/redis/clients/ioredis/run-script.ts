import { WHICH_CONNECTION, waitReplicas } from "../../sending/wait-replicas.js";
import type { ReplicaWait, ScriptRef } from "../connection.js";
import type { Commands } from "./ioredis-client.js";

/** EVALSHA, or EVAL where the text is given. */
export function runScript(
  client: Commands,
  script: ScriptRef,
  keys: string[],
  args: string[],
): Promise<unknown> {
  return "sha" in script
    ? client.evalsha(script.sha, keys.length, ...keys, ...args)
    : client.eval(script.text, keys.length, ...keys, ...args);
}

/** Sends the script and then WAIT, on one connection. */
export const runScriptThenWait = (
  node: Commands,
  script: ScriptRef,
  keys: string[],
  args: string[],
  { replicas, timeoutMs }: ReplicaWait,
) =>
  waitReplicas([
    node.call(...WHICH_CONNECTION),
    runScript(node, script, keys, args),
    node.call("WAIT", String(replicas), String(timeoutMs)),
    node.call(...WHICH_CONNECTION),
  ]);

/** Sends SCAN to one node. */
export const scanner = (node: Commands) => (args: readonly string[]) => node.call("SCAN", ...args);
