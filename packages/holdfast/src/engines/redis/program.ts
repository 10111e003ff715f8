import { createHash } from "node:crypto";
import type { Script } from "./client.js";
import { keysOf } from "./keys.js";
import { scripts } from "./scripts.gen.js";

/** The same program, by its name and in full. */
export interface Program {
  readonly bySha: Script;
  readonly inFull: Script;
}

/** The files in their order, after a line of what is the same at every call. */
export function programFor(idleMs: number, cluster: boolean): Program {
  const keysEach = cluster ? keysOf("").length : 1;
  const commands = cluster ? "'SPUBLISH', 'SHARDNUMSUB'" : "'PUBLISH', 'NUMSUB'";
  const parts = Object.keys(scripts)
    .sort()
    .map((name) => scripts[name as keyof typeof scripts]);
  const constants = `local STRIDE, PUBLISH, COUNT, IDLE = ${keysEach}, ${commands}, '${idleMs}'`;
  const text = [constants, ...parts].join("\n");
  const sha = createHash("sha1").update(text).digest("hex");
  return { bySha: { sha }, inFull: { text } };
}
