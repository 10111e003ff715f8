import { randomFillSync } from "node:crypto";

const BYTES = 16;
const pool = Buffer.allocUnsafe(BYTES * 256);
let used = pool.length;

/** 128 random bits in hex. One call for random bytes serves 256 ids; a call each is slow. */
export function mintGrantId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += BYTES;
  return pool.toString("hex", used - BYTES, used);
}
