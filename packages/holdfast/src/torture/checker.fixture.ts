import type { Contended, Entry, Reading } from "./history.fixture.js";

/** One lease as its holder saw it: held from the first sight of it to the last. */
export interface Hold {
  readonly lease: string;
  readonly resource: string;
  readonly exclusive: boolean;
  readonly token: bigint;
  readonly from: number;
  readonly to: number;
  readonly sights: readonly Sight[];
}

type Sight = Extract<Entry, { e: "held" }>;

// A backend rounds to milliseconds, and its clock and ours may drift apart while a reading travels.
const SLACK_MS = 25;
/** More than one grant can reserve. */
const LONGEST_RANGE = 1024n;

/** Decides from the history alone. Gives what is wrong, a sentence each. */
export function violations(
  entries: readonly Entry[],
  readings: readonly Reading[],
  resources: readonly Contended[],
): string[] {
  const holds = holdsOf(entries);
  const shrunk = new Set(entries.flatMap((entry) => (entry.e === "shrinks" ? [entry.lease] : [])));
  const checked = holds.filter(({ lease }) => !shrunk.has(lease));
  return resources.flatMap(({ name, limit }) => {
    const here = holds.filter(({ resource }) => resource === name);
    return [
      ...overlaps(here, limit),
      ...tokensGoneBack(here),
      ...beliefs(
        checked.filter(({ resource }) => resource === name),
        readings.filter(({ resource }) => resource === name),
      ),
    ];
  });
}

export function holdsOf(entries: readonly Entry[]): Hold[] {
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
      // Between these two instants it was held for certain.
      from: first.to,
      to: seen.at(-1)!.from,
      sights: seen,
    };
  });
}

/** Sweeps over the holds in time: an exclusive one is alone, shared ones are at most so many. */
function overlaps(holds: readonly Hold[], limit: number): string[] {
  const found: string[] = [];
  const open = new Set<Hold>();
  const ends = holds.filter(({ from, to }) => to > from);
  const steps = ends.flatMap((hold) => [
    { at: hold.from, hold, opens: true },
    { at: hold.to, hold, opens: false },
  ]);
  // Where one ends at the instant at which another begins, they do not overlap.
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

/** An exclusive grant has a greater token than everybody who held before it. */
function tokensGoneBack(holds: readonly Hold[]): string[] {
  const found: string[] = [];
  const inTime = [...holds].sort((a, b) => a.from - b.from);
  let highest: Hold | null = null;
  for (const hold of inTime) {
    if (highest !== null && hold.exclusive && hold.token <= highest.token) {
      found.push(`${hold.resource}: token ${hold.token} came after ${highest.token}`);
    }
    if (highest === null || hold.token > highest.token) highest = hold;
  }
  return found;
}

/** Whose range the token is of: the nearest grant that begins before it. */
function grantOf(token: bigint, grants: Reading["grants"]): Reading["grants"][number] | undefined {
  const before = grants.filter((one) => token >= one.token && token < one.token + LONGEST_RANGE);
  return before.sort((a, b) => (a.token > b.token ? -1 : 1))[0];
}

/** A lease that was held before a reading and after it was there, for at least as long as it believed. */
function beliefs(holds: readonly Hold[], readings: readonly Reading[]): string[] {
  const found: string[] = [];
  for (const { resource, from, to, grants } of readings) {
    for (const { token, sights } of holds) {
      if (sights[0]!.to > from || sights.at(-1)!.from < to) continue;
      const before = sights.findLast((sight) => sight.to <= from)!;
      const grant = grantOf(token, grants);
      if (grant === undefined) {
        found.push(`${resource}: token ${token} was held, and the backend had no such grant`);
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
