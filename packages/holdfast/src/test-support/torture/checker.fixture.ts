import type { Contended, LogEntry, Reading } from "./history.fixture.js";

/** One lease as its holder saw it: held from the first observation to the last. */
export interface Hold {
  readonly lease: string;
  readonly resource: string;
  readonly exclusive: boolean;
  readonly token: bigint;
  readonly from: number;
  readonly to: number;
  readonly sights: readonly Sight[];
}

type Sight = Extract<LogEntry, { e: "held" }>;

// A backend rounds to milliseconds, and its clock and ours may drift apart during a reading.
const SLACK_MS = 25;
/** More tokens than one grant can reserve. */
const LONGEST_RANGE = 1024n;

/** Error codes of an acquire that show a defect of the engine or of the test. */
const NEVER = new Set(["CONTRACT", "USAGE", "UNSUPPORTED"]);

/** Checks the history alone. Returns the violations, one sentence each. */
export function violations(
  entries: readonly LogEntry[],
  readings: readonly Reading[],
  resources: readonly Contended[],
): string[] {
  const holds = holdsOf(entries);
  const promises = promisesOf(entries);
  const found = resources.flatMap(({ name, limit, lockDelayMs }) => {
    const here = holds.filter(({ resource }) => resource === name);
    const unforced = here.filter((hold) => !promises.forced.has(nameOf(hold)));
    return [
      ...overlaps(unforced, limit),
      ...tokensTwice(here),
      ...tokensGoneBack(here),
      ...tooEarly(unforced, lockDelayMs, promises),
      ...beliefs(
        unforced.filter(({ lease }) => !promises.shrunk.has(lease)),
        readings.filter(({ resource }) => resource === name),
      ),
    ];
  });
  for (const entry of entries) {
    if (entry.e === "ended" && NEVER.has(entry.code)) found.push(`an acquire ended: ${entry.code}`);
  }
  return found;
}

/** Actions of holders and others that change what may be expected of a lease. */
interface Promises {
  readonly shrunk: ReadonlySet<string>;
  readonly givenBack: ReadonlySet<string>;
  /** By lease: the instant until which it keeps others out in any case. */
  readonly kept: ReadonlyMap<string, number>;
  readonly forced: ReadonlySet<string>;
  readonly killed: ReadonlySet<string>;
}

function promisesOf(entries: readonly LogEntry[]): Promises {
  const [shrunk, givenBack] = [new Set<string>(), new Set<string>()];
  const [forced, killed] = [new Set<string>(), new Set<string>()];
  const kept = new Map<string, number>();
  for (const entry of entries) {
    if (entry.e === "shrinks") shrunk.add(entry.lease);
    else if (entry.e === "gives-back") givenBack.add(entry.lease);
    else if (entry.e === "keeps") kept.set(entry.lease, entry.until);
    else if (entry.e === "forced") forced.add(nameOf(entry));
    else if (entry.e === "killed") killed.add(String(entry.pid));
  }
  return { shrunk, givenBack, kept, forced, killed };
}

function nameOf({ resource, token }: { resource: string; token: bigint | string }): string {
  return `${token} ${resource}`;
}

export function holdsOf(entries: readonly LogEntry[]): Hold[] {
  const sights = new Map<string, Sight[]>();
  for (const entry of entries) {
    if (entry.e !== "held") continue;
    const seen = sights.get(entry.lease);
    if (seen === undefined) sights.set(entry.lease, [entry]);
    else seen.push(entry);
  }
  return [...sights.values()].map((seen) => {
    const first = seen[0]!;
    return {
      lease: first.lease,
      resource: first.resource,
      exclusive: first.mode === "exclusive",
      token: BigInt(first.token),
      // The lease was certainly held between these two instants.
      from: first.to,
      to: seen.at(-1)!.from,
      sights: seen,
    };
  });
}

/**
 * Sweeps over the holds in time: an exclusive one must be alone, shared ones must keep the limit.
 */
function overlaps(holds: readonly Hold[], limit: number): string[] {
  const found: string[] = [];
  const open = new Set<Hold>();
  const ends = holds.filter(({ from, to }) => to > from);
  const steps = ends.flatMap((hold) => [
    { at: hold.from, hold, opens: true },
    { at: hold.to, hold, opens: false },
  ]);
  // A hold that ends when another begins does not overlap it.
  steps.sort((a, b) => a.at - b.at || Number(a.opens) - Number(b.opens));
  for (const { hold, opens } of steps) {
    if (!opens) {
      open.delete(hold);
      continue;
    }
    for (const other of open) {
      if (!hold.exclusive && !other.exclusive) continue;
      const ms = Math.min(hold.to, other.to) - hold.from;
      found.push(
        `${hold.resource}: token ${other.token} and token ${hold.token} held for ${ms.toFixed(1)} ms`,
      );
    }
    open.add(hold);
    const shared = [...open].filter(({ exclusive }) => !exclusive).length;
    if (!hold.exclusive && shared > limit) {
      found.push(`${hold.resource}: ${shared} hold at once where ${limit} may`);
    }
  }
  return found;
}

function tokensTwice(holds: readonly Hold[]): string[] {
  const counts = new Map<bigint, number>();
  for (const { token } of holds) counts.set(token, (counts.get(token) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > 1)
    .map(([token, count]) => `${holds[0]!.resource}: token ${token} was given to ${count} leases`);
}

/** Nobody may hold within the lock-delay of a lost lease, or while a run keeps others out. */
function tooEarly(holds: readonly Hold[], lockDelayMs: number, promises: Promises): string[] {
  const closedUntil = ({ lease, sights }: Hold): number => {
    const last = sights.at(-1)!;
    const isKilled = promises.killed.has(lease.split(" ")[0]!);
    const until = isKilled ? -Infinity : (promises.kept.get(lease) ?? -Infinity);
    const lost = !promises.givenBack.has(lease) && !promises.shrunk.has(lease);
    if (lockDelayMs === 0 || !lost) return until;
    return Math.max(until, (isKilled ? last.from : last.until) + lockDelayMs);
  };
  const found: string[] = [];
  const inTime = [...holds].sort((a, b) => a.from - b.from);
  for (const [i, hold] of inTime.entries()) {
    const next = inTime[i + 1];
    const earlyMs = closedUntil(hold) - (next?.from ?? Infinity);
    if (earlyMs <= SLACK_MS) continue;
    const { resource, token } = next!;
    const ms = earlyMs.toFixed(0);
    found.push(`${resource}: token ${token} was held ${ms} ms too early after token ${hold.token}`);
  }
  return found;
}

/**
 * A grant needs a greater token than every earlier exclusive grant; an exclusive grant, than all
 * earlier ones.
 */
function tokensGoneBack(holds: readonly Hold[]): string[] {
  const found: string[] = [];
  const inTime = [...holds].sort((a, b) => a.from - b.from);
  let [highest, highestExclusive] = [-1n, -1n];
  for (const { resource, token, exclusive } of inTime) {
    const before = exclusive ? highest : highestExclusive;
    if (token <= before) found.push(`${resource}: token ${token} came after ${before}`);
    if (token > highest) highest = token;
    if (exclusive && token > highestExclusive) highestExclusive = token;
  }
  return found;
}

/**
 * The grant whose range contains the token: the nearest one that begins before it. Readers have no
 * ranges.
 */
function grantOf(
  { token, exclusive }: Hold,
  grants: Reading["grants"],
): Reading["grants"][number] | undefined {
  if (!exclusive) return grants.find((one) => one.token === token);
  const before = grants.filter((one) => token >= one.token && token < one.token + LONGEST_RANGE);
  return before.sort((a, b) => (a.token > b.token ? -1 : 1))[0];
}

/**
 * A lease that was held before and after a reading must be in it, for at least as long as its
 * holder believed.
 */
function beliefs(holds: readonly Hold[], readings: readonly Reading[]): string[] {
  const found: string[] = [];
  for (const { resource, from, to, grants } of readings) {
    for (const hold of holds) {
      const { token, sights } = hold;
      if (sights[0]!.to > from || sights.at(-1)!.from < to) continue;
      const before = sights.findLast((sight) => sight.to <= from)!;
      const grant = grantOf(hold, grants);
      if (grant === undefined) {
        const had = grants.map((one) => one.token).join(", ") || "none";
        const seen = `seen ${sights.length} times, last ${(sights.at(-1)!.to - to).toFixed(0)} ms later`;
        found.push(
          `${resource}: token ${token} was held, and the backend had no such grant (it had ${had}; ${seen})`,
        );
        continue;
      }
      const overMs = before.until - (to + grant.remainingMs);
      if (overMs <= SLACK_MS) continue;
      found.push(
        `${resource}: token ${token} believed ${overMs.toFixed(0)} ms more than there was`,
      );
    }
  }
  return found;
}
