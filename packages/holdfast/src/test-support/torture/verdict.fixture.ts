import assert from "node:assert/strict";
import { type Hold, holdsOf, violations } from "./checker.fixture.js";
import { contended, type LogEntry, type RecordReading } from "./history.fixture.js";
import type { Place } from "./place.fixture.js";
import type { TortureTerms } from "./torture.fixture.js";
import type { Workers } from "./workers.fixture.js";

/** What happened on the backend during a run. */
export interface TortureRecord {
  readonly readings: readonly RecordReading[];
  /** How often the backend was down when it was to be read. */
  readonly unread: number;
  /** How often each fault was inflicted. */
  readonly faults: Readonly<Record<string, number>>;
  /** The instant from which there were no faults. */
  readonly quietFrom: number;
}

/** Fails if a law was broken, or if the run proves too little. */
export function verdict(
  place: Place,
  terms: TortureTerms,
  workers: Workers,
  { readings, unread, faults, quietFrom }: TortureRecord,
): void {
  const { number, died } = workers;
  const entries = workers.entries();
  const resources = contended(place.can);
  const wrong = [...violations(entries, readings, resources), ...number.wrongs, ...died];
  const kinds = new Map(resources.map(({ name, kind }) => [name, kind]));
  const all = holdsOf(entries);
  const holds = singles(place, all);
  const grouped = all.filter(({ resource, from, to }) => {
    return kinds.get(resource) === "group" && to - from > place.ttlMs;
  });
  const ended: Record<string, number> = {};
  for (const entry of entries) {
    if (entry.e === "ended") ended[entry.code] = (ended[entry.code] ?? 0) + 1;
  }
  const report = {
    ...{ seed: terms.seed, grants: holds.length, faults, ended },
    grouped: grouped.length,
    ...{ readings: readings.length, unread, refused: number.refused },
    ...{ counted: number.value, violations: wrong.length },
  };
  console.log(JSON.stringify(report));
  assert.deepEqual(wrong.slice(0, 10), [], `${wrong.length} violations`);
  const { leastGrants, leastFaults } = terms;
  assert.ok(holds.length >= leastGrants, `weak: ${holds.length} grants of ${leastGrants}`);
  assert.ok(countOf(faults) >= leastFaults, `weak: fewer than ${leastFaults} faults`);
  const left = notRecovered(place, holds, quietFrom);
  assert.deepEqual(left, [], "nobody got these after the faults were over");
  assert.ok(number.value > 0, "nobody counted");
}

/** Resources that are held one at a time, and that nobody has held since the faults were over. */
export function notRecovered(place: Place, holds: readonly Hold[], quietFrom: number): string[] {
  const late = new Set(holds.filter(({ from }) => from > quietFrom).map((hold) => hold.resource));
  return singleNames(place).filter((name) => !late.has(name));
}

/** Whether there were too few grants or faults to prove something. */
export function isWeak(
  place: Place,
  { leastGrants, leastFaults }: TortureTerms,
  entries: () => readonly LogEntry[],
  faults: TortureRecord["faults"],
): boolean {
  if (countOf(faults) < leastFaults) return true;
  return singles(place, holdsOf(entries())).length < leastGrants;
}

/** The holds of resources that are held one at a time: a group would count for many. */
function singles(place: Place, holds: readonly Hold[]): readonly Hold[] {
  const names = new Set(singleNames(place));
  return holds.filter(({ resource }) => names.has(resource));
}

function singleNames(place: Place): readonly string[] {
  return contended(place.can).flatMap(({ name, kind }) => (kind === undefined ? [name] : []));
}

function countOf(faults: TortureRecord["faults"]): number {
  return Object.values(faults).reduce((sum, count) => sum + count, 0);
}
