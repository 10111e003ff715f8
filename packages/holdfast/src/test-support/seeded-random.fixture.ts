import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { mintGrantId } from "../core/holding/grant-id.js";

/** A whole number from 0 to `below` - 1. */
export type Random = (below: number) => number;

/** Returns the same numbers for the same seed. */
export function randomOf(seed: number): Random {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e37_79b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

/**
 * All random numbers of the library come from `random` until the work is over: ids, jitter, delays.
 */
export async function withSeededRandom(random: Random, work: () => Promise<void>): Promise<void> {
  let filled = false;
  const fill = (bytes: Buffer) => {
    filled = true;
    for (let i = 0; i < bytes.length; i++) bytes[i] = random(256);
    return bytes;
  };
  const mocks = [
    mock.method(crypto, "randomFillSync", fill as typeof crypto.randomFillSync),
    mock.method(crypto, "randomInt", random as typeof crypto.randomInt),
  ];
  syncBuiltinESMExports();
  try {
    // Use up the bytes that were drawn before, with another seed.
    while (!filled) mintGrantId();
    await work();
  } finally {
    for (const { mock } of mocks) mock.restore();
    syncBuiltinESMExports();
  }
}
