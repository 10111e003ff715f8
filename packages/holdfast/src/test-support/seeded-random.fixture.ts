import crypto from "node:crypto";
import { syncBuiltinESMExports } from "node:module";
import { mock } from "node:test";
import { mintGrantId } from "../core/holding/grant-id.js";

/** A whole number from 0 up to, and without, `below`. */
export type Random = (below: number) => number;

/** The same numbers for the same seed. */
export function randomOf(seed: number): Random {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e37_79b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

/** Whatever the library leaves to chance comes from this until the work is over: ids, jitter, delays. */
export async function withChance(random: Random, work: () => Promise<void>): Promise<void> {
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
    // Bytes that were drawn before belong to another seed.
    while (!filled) mintGrantId();
    await work();
  } finally {
    for (const { mock } of mocks) mock.restore();
    syncBuiltinESMExports();
  }
}
