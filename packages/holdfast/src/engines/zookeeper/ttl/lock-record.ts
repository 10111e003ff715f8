import type { Claim, Mode } from "../../../engine.js";
import type { LeaderTime } from "../session/leader-time.js";

const MARK = /^[0-9a-f]{32}$/;

/** A grant in the record. The beat rises with every renewal: one that stands still is dying. */
export interface Holding {
  readonly mode: Mode;
  readonly limit: number | null;
  readonly token: string;
  readonly tokens: number;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly label: string;
  readonly beat: number;
  /** Of the latest renewal: one with a smaller number comes too late. */
  readonly order: number;
  /** Which of its tokens is in use. */
  readonly index: number;
  readonly revoked: boolean;
  /** Its holder has gone and left it to time. */
  readonly left: boolean;
  /** When it was left, by the leader's clock: atMs and zxid. Whoever writes next writes it down. */
  readonly leftAt?: readonly [string, string];
}

/** All that is known of one resource: the data of one node. By the hash of the grantId. */
export interface Ledger {
  readonly grants: Readonly<Record<string, Holding>>;
  /**
   * Claims that were given up, and for how many milliseconds that must be remembered. There can be
   * many, so this is changed in place: a reading belongs to whoever read it.
   */
  readonly graves: Map<string, number>;
}

export function emptyLedger(): Ledger {
  return { grants: {}, graves: new Map() };
}

/** A ledger as its node has it, and the mark of that node; null for somebody else's node. */
export function readLedger(data: Buffer): { mark: string; ledger: Ledger } | null {
  try {
    const { mark, grants, graves } = JSON.parse(data.toString()) as Record<string, unknown>;
    if (typeof mark !== "string" || !MARK.test(mark)) return null;
    if (!isObject(grants) || !isObject(graves)) return null;
    const known = { grants: grants as Ledger["grants"], graves: graves as Record<string, number> };
    return { mark, ledger: { ...known, graves: new Map(Object.entries(known.graves)) } };
  } catch {
    // Not even JSON.
    return null;
  }
}

export function writeLedger(mark: string, { grants, graves }: Ledger): Buffer {
  return Buffer.from(JSON.stringify({ mark, grants, graves: Object.fromEntries(graves) }));
}

/** How many bytes its node takes. */
export function sizeOf(ledger: Ledger): number {
  return writeLedger("", ledger).length;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

export function isEmpty({ grants, graves }: Ledger): boolean {
  return Object.keys(grants).length + graves.size === 0;
}

export function holdingOf(claim: Claim, token: bigint): Holding {
  const { mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
  const terms = { mode, limit, tokens, ttlMs, lockDelayMs, label };
  const fresh = { beat: 0, order: 0, index: 0, revoked: false, left: false };
  return { ...terms, token: String(token), ...fresh };
}

export function tokenInUse({ token, index }: Holding): bigint {
  return BigInt(token) + BigInt(index);
}

export function leftAt({ leftAt }: Holding): LeaderTime | null {
  return leftAt === undefined ? null : { atMs: BigInt(leftAt[0]), zxid: BigInt(leftAt[1]) };
}

/**
 * What is to be written on top of a page. Who leaves a grant behind does not know the leader's time,
 * but that page has it; every later one would be of a later time.
 */
export function withLeftAt(next: Ledger, page: Ledger, { atMs, zxid }: LeaderTime): Ledger {
  const since = [String(atMs), String(zxid)] as const;
  let { grants } = next;
  for (const [hash, holding] of Object.entries(grants)) {
    const isNew = page.grants[hash]?.beat !== holding.beat;
    if (!holding.left || holding.leftAt !== undefined || isNew) continue;
    grants = { ...grants, [hash]: { ...holding, leftAt: since } };
  }
  return { ...next, grants };
}

export function withGrant(ledger: Ledger, hash: string, holding: Holding): Ledger {
  return { ...ledger, grants: { ...ledger.grants, [hash]: holding } };
}

export function withoutGrant(ledger: Ledger, hash: string): Ledger {
  const { [hash]: _, ...grants } = ledger.grants;
  return { ...ledger, grants };
}

export function withGrave(ledger: Ledger, hash: string, forMs: number): Ledger {
  ledger.graves.set(hash, forMs);
  return ledger;
}

/** Who holds and who was revoked. Renewals do not change it, so they wake nobody. */
export function signatureOf({ grants }: Ledger): string {
  const told = Object.entries(grants).map(([hash, { revoked }]) => `${hash}${revoked ? "!" : ""}`);
  return told.sort().join(" ");
}
