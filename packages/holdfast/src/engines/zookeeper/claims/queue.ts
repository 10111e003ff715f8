import {
  type Layout,
  type Marker,
  type QueueMember,
  readMarker,
  tombstoneName,
} from "../layout.js";

/** The queue of a resource, read from the names of its node's children. */
export interface Queue {
  /** In the order of their numbers, which is the order of arrival. */
  readonly members: readonly QueueMember[];
  /** How many members at the head hold: one is eligible if all before it are eligible. */
  readonly holding: number;
  readonly markers: readonly Marker[];
  /** The markers of holders that ended without a release. */
  readonly orphans: readonly Marker[];
  /** The position of a name among the members; -1 for a child that is not a member. */
  readonly at: ReadonlyMap<string, number>;
}

export const EMPTY_QUEUE: Queue = {
  ...{ members: [], holding: 0, markers: [], orphans: [], at: new Map<string, number>() },
};

export function readQueue(names: readonly string[], layout: Layout): Queue {
  const members: QueueMember[] = [];
  const markers: Marker[] = [];
  for (const name of names) {
    const member = layout.read(name);
    if (member !== null) members.push(member);
    const marker = readMarker(name);
    if (marker !== null) markers.push(marker);
  }
  // The 32-bit number wraps around. Contenders that live at the same time are never half of it
  // apart.
  members.sort((a, b) => (a.number - b.number) | 0);
  const alive = new Set(members.map(keyOf));
  const orphans = markers.filter((marker) => !alive.has(keyOf(marker)));
  const holding = countHolding(members);
  const at = new Map(names.map((name) => [name, -1]));
  for (const [i, { name }] of members.entries()) at.set(name, i);
  return { members, holding, markers, orphans, at };
}

/** One claim may have stood in the queue before, and its marker may still be there. */
function keyOf({ hash, number }: QueueMember | Marker): string {
  return `${hash} ${number}`;
}

/** The path of this member's marker, which a release deletes with it. */
export function markerOf(queue: Queue, resourcePath: string, member: QueueMember): string | null {
  const marker = queue.markers.find((one) => keyOf(one) === keyOf(member));
  return marker === undefined ? null : `${resourcePath}/${marker.name}`;
}

function countHolding(members: readonly QueueMember[]): number {
  const [first] = members;
  if (first?.mode === "exclusive") return 1;
  const at = members.findIndex((c, i) => c.mode === "exclusive" || i >= (c.limit ?? Infinity));
  return at < 0 ? members.length : at;
}

/**
 * The members whose end could make this one eligible; empty if it is eligible. An exclusive
 * member waits for its predecessor, a shared one for the nearest exclusive one. With a limit of
 * n, a shared one waits for any of the n before it: while all of them stay, there are n before it.
 */
export function blockers(members: readonly QueueMember[], at: number): readonly QueueMember[] {
  const own = members[at]!;
  if (own.mode === "exclusive") return members.slice(Math.max(0, at - 1), at);
  for (let i = at - 1; i >= 0; i--) if (members[i]!.mode === "exclusive") return [members[i]!];
  const limit = own.limit ?? Infinity;
  return at < limit ? [] : members.slice(at - limit, at);
}

/** The limit of an earlier shared member, if it differs from ours; else undefined. */
export function otherLimit(
  members: readonly QueueMember[],
  limit: number | null,
): number | null | undefined {
  return members.find((c) => c.mode === "shared" && c.limit !== limit)?.limit;
}

/**
 * Whether a new claim could not be granted now: then nothing needs to be written. Grants that were
 * left behind do not count here, because a claim needs a node to find out whether their time is
 * over.
 */
export function wouldWait(
  queue: Queue,
  mode: "exclusive" | "shared",
  limit: number | null,
): boolean {
  const members = queue.members.filter(({ left }) => left === null);
  const newcomer: QueueMember = { name: "", number: 0, mode, limit, hash: "", left: null };
  return blockers([...members, newcomer], members.length).length > 0;
}

/** Whether this claim must not enter again: it was given up, or its grant was left behind. */
export function isCancelled({ at, members }: Queue, hash: string): boolean {
  return (
    at.has(tombstoneName(hash)) || members.some((one) => one.left !== null && one.hash === hash)
  );
}
