import { readFileSync } from "node:fs";

const MS_A_TICK = 10;
const STEAL = 8;

/**
 * How long the host has kept this machine's cores from running so far; 0 where it is not counted.
 */
export function stolenMs(): number {
  try {
    return MS_A_TICK * Number(readFileSync("/proc/stat", "latin1").split(/\s+/, STEAL + 1)[STEAL]);
  } catch {
    return 0;
  }
}
