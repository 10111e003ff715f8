import { createHash } from "node:crypto";
import type { ScriptRef } from "../clients/connection.js";
import { keysOf } from "./keys.js";
import { scripts } from "./scripts.gen.js";

/** The script, by its SHA1 and in full. */
export interface Script {
  readonly bySha: ScriptRef;
  readonly inFull: ScriptRef;
}

// The order matters. The loop begins in fast-path.lua and ends in main.lua. What lies between is
// the second part.
const PARTS = [
  scripts.common,
  scripts.fastPath,
  scripts.records,
  scripts.queue,
  scripts.acquire,
  scripts.hold,
  scripts.waiters,
  scripts.main,
];

/** The script: a line of constants, and then the files in their order. */
export function scriptFor(idleMs: number, cluster: boolean): Script {
  const keysEach = cluster ? keysOf("").length : 1;
  const commands = cluster ? "'SPUBLISH', 'SHARDNUMSUB'" : "'PUBLISH', 'NUMSUB'";
  const constants = `local STRIDE, PUBLISH, COUNT, IDLE = ${keysEach}, ${commands}, '${idleMs}'`;
  const text = [constants, ...PARTS].join("\n");
  const sha = createHash("sha1").update(text).digest("hex");
  return { bySha: { sha }, inFull: { text } };
}
