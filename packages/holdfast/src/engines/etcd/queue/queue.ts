import type { Claim, HolderView } from "../../../engine.js";
import { limitMismatch } from "../../../errors.js";
import type { KeyValue } from "../client/requests.js";
import { type KeyRecord, readRecord } from "./key-record.js";
import { markedBy } from "./keys.js";

/** A holder or a waiter in the queue of a resource. */
export interface QueueMember extends KeyValue {
  /** Null for another program's key, which counts as exclusive. */
  readonly record: KeyRecord | null;
  readonly holds: boolean;
}

/**
 * A key that a waiter waits for. Other programs delete and create the same key again, and the new
 * key is not the one that was waited for. So the creation revision is part of its identity.
 */
export type Predecessor = Pick<KeyValue, "key" | "created">;

export function isSame(one: Predecessor, other: Predecessor): boolean {
  return one.key === other.key && one.created === other.created;
}

/** The first token of a grant. */
export function tokenOf({ created }: Pick<KeyValue, "created">): bigint {
  return created * 1024n;
}

export function tokenInUse(member: QueueMember): bigint {
  return tokenOf(member) + BigInt(member.record?.index ?? 0);
}

/**
 * The holders and waiters of a resource at one revision, in the order of their keys' creation. A
 * waiter holds once all members before it let it in, whether its process knows it yet or not. A
 * member that was told that it holds stays a holder, whatever comes.
 */
export class Queue {
  readonly members: readonly QueueMember[];
  /** Markers of lost grants. Nobody is let in while one exists. */
  readonly orphans: readonly KeyValue[];
  readonly #isMarked: boolean;

  constructor(keyValues: readonly KeyValue[]) {
    const byKey = new Map(keyValues.map((kv) => [kv.key, kv]));
    const all = [...byKey.values()].sort((a, b) => (a.created < b.created ? -1 : 1));
    this.orphans = all.filter(({ key }) => {
      const marked = markedBy(key);
      return marked !== null && !byKey.has(marked);
    });
    this.#isMarked = all.some(({ key }) => markedBy(key) !== null);
    this.members = withHolders(
      all.filter(({ key }) => markedBy(key) === null),
      this.orphans.length > 0,
    );
  }

  get holders(): readonly QueueMember[] {
    return this.members.filter(({ holds }) => holds);
  }

  get waiters(): readonly QueueMember[] {
    return this.members.filter(({ holds }) => !holds);
  }

  find(key: string): QueueMember | undefined {
    return this.members.find((member) => member.key === key);
  }

  /** Whether a new claim would be let in at once. */
  admits({ mode, limit }: Pick<Claim, "mode" | "limit">): boolean {
    if (this.orphans.length > 0 || this.waiters.length > 0) return false;
    if (mode === "exclusive") return this.members.length === 0;
    return (
      this.members.every(({ record }) => record?.mode === "shared") &&
      this.members.length < (limit ?? Infinity)
    );
  }

  /** The oldest shared claim sets the limit. Another limit is the caller's mistake. */
  refuseOtherLimit({ resource, mode, limit }: Claim, self: string): void {
    const first = this.members.find(({ key, record }) => record?.mode === "shared" && key !== self);
    if (mode !== "shared" || first?.record == null || first.record.limit === limit) return;
    throw limitMismatch(resource, limit, first.record.limit);
  }

  /**
   * The keys whose end may give this waiter its turn. An exclusive waiter waits for the member just
   * before it. A shared waiter waits for the nearest member that is not shared; without one, for
   * the nearest `limit` members before it: while all of them exist, it cannot be let in.
   */
  before(self: KeyValue): Predecessor[] {
    const ahead = this.members.filter(({ created }) => created < self.created).reverse();
    const own = readRecord(self);
    const markers = this.orphans;
    if (own === null || own.mode === "exclusive") {
      return ahead.length > 0 ? [ahead[0]!] : [...markers];
    }
    const wall = ahead.find(({ record }) => record?.mode !== "shared");
    if (wall !== undefined) return [wall];
    return [...ahead.slice(0, own.limit ?? 0), ...markers];
  }

  /**
   * The only member before this waiter. When it ends, the waiter holds without asking the server:
   * new members come behind it, and only a member before it could leave a marker. Null if there are
   * more members before it, or if a marker exists or may come.
   */
  lastBefore(self: KeyValue): Predecessor | null {
    const ahead = this.members.filter(({ created }) => created < self.created);
    const own = this.find(self.key);
    if (ahead.length !== 1 || own === undefined || this.#isMarked) return null;
    return isQuiet(own) && isQuiet(ahead[0]!) ? ahead[0]! : null;
  }
}

/** Whether a member leaves no marker when it ends. Other programs never leave one. */
function isQuiet({ record }: QueueMember): boolean {
  return (record?.lockDelayMs ?? 0) === 0;
}

function withHolders(all: readonly KeyValue[], closed: boolean): QueueMember[] {
  let open = !closed;
  let shared = 0;
  return all.map((kv, i) => {
    const record = readRecord(kv);
    const isShared = record?.mode === "shared";
    const fits = isShared ? shared === i && shared < (record.limit ?? Infinity) : i === 0;
    const holds = record?.claimed === true || (open && fits);
    if (isShared) shared++;
    open &&= holds;
    return { ...kv, record, holds };
  });
}

/** etcd tells the remaining time in whole seconds, and only when asked, so the caller passes it. */
export function holderView(member: QueueMember, remainingMs: number): HolderView {
  const { record, key } = member;
  return {
    mode: record?.mode ?? "exclusive",
    token: tokenInUse(member),
    label: record?.label ?? `another program, ${key.slice(key.lastIndexOf("/") + 1)}`,
    remainingMs,
    revoked: record?.revoked ?? false,
  };
}

/** The same transaction does not tell the remaining time, so the whole ttl is shown. */
export function viewsOf(holders: readonly QueueMember[]): HolderView[] {
  return holders.map((member) => holderView(member, member.record?.ttlMs ?? 0));
}
