import type { Claim, HolderView, Mode } from "../../../engine.js";
import { limitMismatch } from "../../../errors.js";
import type { KeyValue } from "../client/requests.js";
import { entryIn } from "../client/shapes.js";
import { isOurs, markedBy } from "./keys.js";

/** What a key says about its grant or waiter. Nothing in it is secret. */
export interface Entry {
  readonly mode: Mode;
  readonly limit: number | null;
  /** Of the claim, or of the latest renewal that asked for another one. */
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly tokens: number;
  readonly label: string;
  /** The engine that hears of a revocation. */
  readonly engine: string;
  /** Whether its process knows that it holds. */
  readonly claimed: boolean;
  readonly revoked: boolean;
  /** Of the renewal that wrote this: one with a smaller number comes too late to change it. */
  readonly order: number;
  /** Which of its tokens is in use. */
  readonly index: number;
  /** Its holder has gone and left it to time. */
  readonly left: boolean;
}

/** Somebody in the queue of a resource, holders included. */
export interface Member extends KeyValue {
  /** Null for another program's, which is exclusive. */
  readonly entry: Entry | null;
  readonly holds: boolean;
}

/**
 * A key that a waiter stands behind. Other programs use a key again, and its new life is not the one that
 * was waited for: so it is known by its creation as well.
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
 * JSON. That of a grant which was left begins with a space, so that a transaction can tell it from others
 * without reading it: by the order of bytes it comes before IN_USE, and all others after.
 */
export function writeEntry(entry: Entry): string {
  return `${entry.left ? " " : ""}${JSON.stringify(entry)}`;
}

/** Sorts between what was left and what is in use. */
export const IN_USE = "!";

/** Null for another program's key. One that is named like ours says what ours say, or nothing is certain. */
export function readEntry({ key, value }: Pick<KeyValue, "key" | "value">): Entry | null {
  return isOurs(key) ? entryIn(value) : null;
}

/** The first of its tokens. */
export function tokenOf({ created }: Pick<KeyValue, "created">): bigint {
  return created * 1024n;
}

export function tokenInUse(member: Member): bigint {
  return tokenOf(member) + BigInt(member.entry?.index ?? 0);
}

/**
 * Who holds a resource and who waits for it, at one revision, in the order of their keys' creation.
 * Once everybody before it is let in, a waiter holds, whether its process knows it yet or not. One that
 * was told so stays a holder whatever comes.
 */
export class Queue {
  readonly members: readonly Member[];
  /** Marks of lost grants: as long as one is there nobody is let in. */
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

  /** Whether a claim that came now would be let in at once. */
  admits({ mode, limit }: Pick<Claim, "mode" | "limit">): boolean {
    if (this.orphans.length > 0 || this.waiters.length > 0) return false;
    if (mode === "exclusive") return this.members.length === 0;
    return (
      this.members.every(({ entry }) => entry?.mode === "shared") &&
      this.members.length < (limit ?? Infinity)
    );
  }

  /** The oldest shared claim sets the limit; another one is the caller's mistake. */
  refuseOtherLimit({ resource, mode, limit }: Claim, self: string): void {
    const first = this.members.find(({ key, entry }) => entry?.mode === "shared" && key !== self);
    if (mode !== "shared" || first?.entry == null || first.entry.limit === limit) return;
    throw limitMismatch(resource, limit, first.entry.limit);
  }

  /**
   * The keys whose end may be this waiter's turn. For an exclusive one that is whoever is next before
   * it. For a shared one it is the nearest that is not shared; without one, as many of those nearest
   * before it as may hold together: were they all still there, it could not be let in.
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
   * The only one before this waiter, whose end is its turn without a question: whoever comes stands
   * behind it, and only who was before it could leave a mark. Null if there are more, or a mark is
   * there or may be.
   */
  lastBefore(self: KeyValue): Ahead | null {
    const ahead = this.members.filter(({ created }) => created < self.created);
    const own = this.find(self.key);
    if (ahead.length !== 1 || own === undefined || this.#isMarked) return null;
    return isQuiet(own) && isQuiet(ahead[0]!) ? ahead[0]! : null;
  }
}

/** Nobody leaves a mark who says that it will not; other programs know of none. */
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

/** What is left is known in whole seconds only, and asked for only when somebody wants to see it. */
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

/** How long each has left is not known in the same breath: its whole life at most. */
export function viewsOf(holders: readonly Member[]): HolderView[] {
  return holders.map((member) => holderView(member, member.entry?.ttlMs ?? 0));
}
