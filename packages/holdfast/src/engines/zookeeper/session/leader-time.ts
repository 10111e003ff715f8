// The clocks of well-kept servers differ by less than this.
const APART_MS = 60_000;
const EPOCH_BITS = 32n;

/** An instant of the leader's clock. The upper half of the zxid identifies the leader. */
export interface LeaderTime {
  readonly atMs: bigint;
  readonly zxid: bigint;
}

/** Whether both instants are of one leader: two leaders have two clocks. */
export function isSameClock(one: LeaderTime, other: LeaderTime): boolean {
  return one.zxid >> EPOCH_BITS === other.zxid >> EPOCH_BITS;
}

/** The least time that has passed, if the servers' clocks are at most a minute apart. */
export function elapsedMs(from: LeaderTime, to: LeaderTime): number {
  const ms = Number(to.atMs - from.atMs);
  return isSameClock(from, to) ? ms : ms - APART_MS;
}
