// Whatever the clocks of two servers differ by, it is less than this on any that are looked after.
const APART_MS = 60_000;
const EPOCH_BITS = 32n;

/** A moment of the leader's clock; the upper half of the zxid tells which leader's it is. */
export interface LeaderTime {
  readonly atMs: bigint;
  readonly zxid: bigint;
}

/** Two leaders are two clocks. */
export function isSameClock(one: LeaderTime, other: LeaderTime): boolean {
  return one.zxid >> EPOCH_BITS === other.zxid >> EPOCH_BITS;
}

/** How much time has passed at least, if two servers' clocks are not further apart than a minute. */
export function elapsedMs(from: LeaderTime, to: LeaderTime): number {
  const ms = Number(to.atMs - from.atMs);
  return isSameClock(from, to) ? ms : ms - APART_MS;
}
