import { createHash } from "node:crypto";
import type { ScriptRef } from "../clients/connection.js";
import { keysOf } from "./keys.js";
import { scripts } from "./scripts.gen.js";

/** The same program, by its name and in full. */
export interface Script {
  readonly bySha: ScriptRef;
  readonly inFull: ScriptRef;
}

// The loop begins in the fast path and ends in main; what lies between is the second part.
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

/** The files in their order, after a line of what is the same at every call. */
export function scriptFor(idleMs: number, cluster: boolean): Script {
  const keysEach = cluster ? keysOf("").length : 1;
  const commands = cluster ? "'SPUBLISH', 'SHARDNUMSUB'" : "'PUBLISH', 'NUMSUB'";
  const constants = `local STRIDE, PUBLISH, COUNT, IDLE = ${keysEach}, ${commands}, '${idleMs}'`;
  const text = [constants, ...PARTS].join("\n");
  const sha = createHash("sha1").update(text).digest("hex");
  return { bySha: { sha }, inFull: { text } };
}
