import type { Claim, HolderView, Mode } from "../../../engine.js";
import { limitMismatch } from "../../../errors.js";
import type { KeyValue } from "../client/requests.js";
import { entryIn } from "../client/shapes.js";
import { isOurs, markedBy } from "./keys.js";

/** What a key says about its grant or waiter. Nothing in it is secret. */
export interface Entry {
  readonly mode: Mode;
  readonly limit: number | null;
  /** The ttl of the claim, or of the latest renewal that changed it. */
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly tokens: number;
  readonly label: string;
  /** The engine that is notified of a revocation. */
  readonly engine: string;
  /** Whether the process of the grant knows that it holds. */
  readonly claimed: boolean;
  readonly revoked: boolean;
  /** The order of the renewal that wrote this. A renewal with a smaller order comes too late. */
  readonly order: number;
  /** The index of the token in use. */
  readonly index: number;
  /** The holder left the grant behind: only time ends it. */
  readonly left: boolean;
}

/** A holder or a waiter in the queue of a resource. */
export interface Member extends KeyValue {
  /** Null for another program's key, which counts as exclusive. */
  readonly entry: Entry | null;
  readonly holds: boolean;
}

/**
 * A key that a waiter waits for. Other programs delete and create the same key again, and the new key is
 * not the one that was waited for. So the creation revision is part of its identity.
 */
export type Ahead = Pick<KeyValue, "key" | "created">;

export function isSame(one: Ahead, other: Ahead): boolean {
  return one.key === other.key && one.created === other.created;
}

export function entryOf(claim: Claim, engine: string, claimed: boolean): Entry {
  const { mode, limit, ttlMs, lockDelayMs, tokens, label } = claim;
  return {
    ...{ mode, limit, ttlMs, lockDelayMs, tokens, label, engine, claimed },
    ...{ revoked: false, order: 0, index: 0, left: false },
  };
}

/**
 * JSON. For a grant that was left behind it begins with a space, so that a transaction can recognise it
 * by comparing: in byte order it sorts before IN_USE, and all other entries sort after.
 */
export function writeEntry(entry: Entry): string {
  return `${entry.left ? " " : ""}${JSON.stringify(entry)}`;
}

/** Sorts between entries that were left behind and entries in use. */
export const IN_USE = "!";

/** Null for another program's key. A key with a name like ours must hold an entry like ours, or it throws. */
export function readEntry({ key, value }: Pick<KeyValue, "key" | "value">): Entry | null {
  return isOurs(key) ? entryIn(value) : null;
}

/** The first token of a grant. */
export function tokenOf({ created }: Pick<KeyValue, "created">): bigint {
  return created * 1024n;
}

export function tokenInUse(member: Member): bigint {
  return tokenOf(member) + BigInt(member.entry?.index ?? 0);
}

/**
 * The holders and waiters of a resource at one revision, in the order of their keys' creation. A waiter
 * holds once all members before it let it in, whether its process knows it yet or not. A member that was
 * told that it holds stays a holder, whatever comes.
 */
export class Queue {
  readonly members: readonly Member[];
  /** Marks of lost grants. Nobody is let in while one exists. */
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
    this.members = seated(
      all.filter(({ key }) => markedBy(key) === null),
      this.orphans.length > 0,
    );
  }

  get holders(): readonly Member[] {
    return this.members.filter(({ holds }) => holds);
  }

  get waiters(): readonly Member[] {
    return this.members.filter(({ holds }) => !holds);
  }

  find(key: string): Member | undefined {
    return this.members.find((member) => member.key === key);
  }

  /** Whether a new claim would be let in at once. */
  admits({ mode, limit }: Pick<Claim, "mode" | "limit">): boolean {
    if (this.orphans.length > 0 || this.waiters.length > 0) return false;
    if (mode === "exclusive") return this.members.length === 0;
    return (
      this.members.every(({ entry }) => entry?.mode === "shared") &&
      this.members.length < (limit ?? Infinity)
    );
  }

  /** The oldest shared claim sets the limit. Another limit is the caller's mistake. */
  refuseOtherLimit({ resource, mode, limit }: Claim, self: string): void {
    const first = this.members.find(({ key, entry }) => entry?.mode === "shared" && key !== self);
    if (mode !== "shared" || first?.entry == null || first.entry.limit === limit) return;
    throw limitMismatch(resource, limit, first.entry.limit);
  }

  /**
   * The keys whose end may give this waiter its turn. An exclusive waiter waits for the member just before
   * it. A shared waiter waits for the nearest member that is not shared; without one, for the nearest
   * `limit` members before it: while all of them exist, it cannot be let in.
   */
  before(self: KeyValue): Ahead[] {
    const ahead = this.members.filter(({ created }) => created < self.created).reverse();
    const own = readEntry(self);
    const marks = this.orphans;
    if (own === null || own.mode === "exclusive") {
      return ahead.length > 0 ? [ahead[0]!] : [...marks];
    }
    const wall = ahead.find(({ entry }) => entry?.mode !== "shared");
    if (wall !== undefined) return [wall];
    return [...ahead.slice(0, own.limit ?? 0), ...marks];
  }

  /**
   * The only member before this waiter. When it ends, the waiter holds without asking the server: new
   * members come behind it, and only a member before it could leave a mark. Null if there are more
   * members before it, or if a mark exists or may come.
   */
  lastBefore(self: KeyValue): Ahead | null {
    const ahead = this.members.filter(({ created }) => created < self.created);
    const own = this.find(self.key);
    if (ahead.length !== 1 || own === undefined || this.#isMarked) return null;
    return isQuiet(own) && isQuiet(ahead[0]!) ? ahead[0]! : null;
  }
}

/** Whether a member leaves no mark when it ends. Other programs never leave one. */
function isQuiet({ entry }: Member): boolean {
  return (entry?.lockDelayMs ?? 0) === 0;
}

function seated(all: readonly KeyValue[], closed: boolean): Member[] {
  let open = !closed;
  let shared = 0;
  return all.map((kv, i) => {
    const entry = readEntry(kv);
    const isShared = entry?.mode === "shared";
    const fits = isShared ? shared === i && shared < (entry.limit ?? Infinity) : i === 0;
    const holds = entry?.claimed === true || (open && fits);
    if (isShared) shared++;
    open &&= holds;
    return { ...kv, entry, holds };
  });
}

/** etcd tells the remaining time in whole seconds, and only when asked, so the caller passes it. */
export function holderView(member: Member, remainingMs: number): HolderView {
  const { entry, key } = member;
  return {
    mode: entry?.mode ?? "exclusive",
    token: tokenInUse(member),
    label: entry?.label ?? `another program, ${key.slice(key.lastIndexOf("/") + 1)}`,
    remainingMs,
    revoked: entry?.revoked ?? false,
  };
}

/** The same transaction does not tell the remaining time, so the whole ttl is shown. */
export function viewsOf(holders: readonly Member[]): HolderView[] {
  return holders.map((member) => holderView(member, member.entry?.ttlMs ?? 0));
}
