import { readFileSync } from "node:fs";

const MS_A_TICK = 10;
const STEAL = 8;

/** For how long this machine's cores so far wanted to run and its host ran others; 0 where nobody counts. */
export function stolenMs(): number {
  try {
    return MS_A_TICK * Number(readFileSync("/proc/stat", "latin1").split(/\s+/, STEAL + 1)[STEAL]);
  } catch {
    return 0;
  }
}
