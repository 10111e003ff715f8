import { randomFillSync } from "node:crypto";

const BYTES = 16;
const pool = Buffer.allocUnsafe(BYTES * 256);
let used = pool.length;

/**
 * 128 random bits in hex. One call for random bytes serves 256 ids, because a call for each is
 * slow.
 */
export function mintGrantId(): string {
  if (used === pool.length) refill();
  used += BYTES;
  return pool.toString("hex", used - BYTES, used);
}

/** A random number from 0 to 255, from the same pool. */
export function randomByte(): number {
  if (used === pool.length) refill();
  used += BYTES;
  return pool[used - 1]!;
}

function refill(): void {
  randomFillSync(pool);
  used = 0;
}
