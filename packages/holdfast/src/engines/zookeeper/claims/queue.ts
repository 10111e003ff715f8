import { type Contender, type Layout, type Marker, readMarker, tombstoneName } from "../layout.js";

/** The queue of a resource, read from the names of its node's children. */
export interface Queue {
  /** In the order of their numbers, which is the order of arrival. */
  readonly contenders: readonly Contender[];
  /** How many contenders at the head hold: one is eligible if all before it are eligible. */
  readonly holding: number;
  readonly markers: readonly Marker[];
  /** The markers of holders that ended without a release. */
  readonly orphans: readonly Marker[];
  /** The position of a name among the contenders; -1 for a child that is not a contender. */
  readonly at: ReadonlyMap<string, number>;
}

export const EMPTY_QUEUE: Queue = {
  ...{ contenders: [], holding: 0, markers: [], orphans: [], at: new Map<string, number>() },
};

export function readQueue(names: readonly string[], layout: Layout): Queue {
  const contenders: Contender[] = [];
  const markers: Marker[] = [];
  for (const name of names) {
    const contender = layout.read(name);
    if (contender !== null) contenders.push(contender);
    const marker = readMarker(name);
    if (marker !== null) markers.push(marker);
  }
  // The 32-bit number wraps around. Contenders that live at the same time are never half of it
  // apart.
  contenders.sort((a, b) => (a.number - b.number) | 0);
  const alive = new Set(contenders.map(keyOf));
  const orphans = markers.filter((marker) => !alive.has(keyOf(marker)));
  const holding = countHolding(contenders);
  const at = new Map(names.map((name) => [name, -1]));
  for (const [i, { name }] of contenders.entries()) at.set(name, i);
  return { contenders, holding, markers, orphans, at };
}

/** One claim may have stood in the queue before, and its marker may still be there. */
function keyOf({ hash, number }: Contender | Marker): string {
  return `${hash} ${number}`;
}

/** The path of this contender's marker, which a release deletes with it. */
export function markerOf(queue: Queue, resourcePath: string, contender: Contender): string | null {
  const marker = queue.markers.find((one) => keyOf(one) === keyOf(contender));
  return marker === undefined ? null : `${resourcePath}/${marker.name}`;
}

function countHolding(contenders: readonly Contender[]): number {
  const [first] = contenders;
  if (first?.mode === "exclusive") return 1;
  const at = contenders.findIndex((c, i) => c.mode === "exclusive" || i >= (c.limit ?? Infinity));
  return at < 0 ? contenders.length : at;
}

/**
 * The contenders whose end could make this one eligible; empty if it is eligible. An exclusive
 * contender waits for its predecessor, a shared one for the nearest exclusive one. With a limit of
 * n, a shared one waits for any of the n before it: while all of them stay, there are n before it.
 */
export function blockers(contenders: readonly Contender[], at: number): readonly Contender[] {
  const own = contenders[at]!;
  if (own.mode === "exclusive") return contenders.slice(Math.max(0, at - 1), at);
  for (let i = at - 1; i >= 0; i--)
    if (contenders[i]!.mode === "exclusive") return [contenders[i]!];
  const limit = own.limit ?? Infinity;
  return at < limit ? [] : contenders.slice(at - limit, at);
}

/** The limit of an earlier shared contender, if it differs from ours; else undefined. */
export function otherLimit(
  contenders: readonly Contender[],
  limit: number | null,
): number | null | undefined {
  return contenders.find((c) => c.mode === "shared" && c.limit !== limit)?.limit;
}

/**
 * Whether a new claim could not be granted now: then nothing needs to be written. Grants that were
 * left behind do not count here, because a claim needs a node to find out whether their time is
 * over.
 */
export function isBusy(queue: Queue, mode: "exclusive" | "shared", limit: number | null): boolean {
  const contenders = queue.contenders.filter(({ left }) => left === null);
  const newcomer: Contender = { name: "", number: 0, mode, limit, hash: "", left: null };
  return blockers([...contenders, newcomer], contenders.length).length > 0;
}

/** Whether this claim must not enter again: it was given up, or its grant was left behind. */
export function isBuried({ at, contenders }: Queue, hash: string): boolean {
  return (
    at.has(tombstoneName(hash)) || contenders.some((one) => one.left !== null && one.hash === hash)
  );
}
