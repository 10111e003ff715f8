import type { Claim, Mode } from "../../../engine.js";
import type { LeaderTime } from "../session/leader-time.js";

const NONCE = /^[0-9a-f]{32}$/;

/** A grant in a record. */
export interface RecordedGrant {
  readonly mode: Mode;
  readonly limit: number | null;
  readonly token: string;
  readonly tokens: number;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly label: string;
  /** Rises with every renewal. A grant whose beat stays the same is ending. */
  readonly beat: number;
  /** The order of the latest renewal: a renewal with a smaller order comes too late. */
  readonly order: number;
  /** The index of the token in use. */
  readonly index: number;
  readonly revoked: boolean;
  /** The holder left the grant behind: only time ends it. */
  readonly left: boolean;
  /**
   * When it was left behind, by the leader's clock: atMs and zxid. The next client that writes adds
   * it.
   */
  readonly leftAt?: readonly [string, string];
}

/** All that is known of one resource: the data of its node. */
export interface LockRecord {
  /** By the hash of the grantId. */
  readonly grants: Readonly<Record<string, RecordedGrant>>;
  /**
   * Claims that were given up, and for how many milliseconds each must be remembered. There can be
   * many, so the map is changed in place. Every reading has a map of its own.
   */
  readonly tombstones: Map<string, number>;
}

export function emptyRecord(): LockRecord {
  return { grants: {}, tombstones: new Map() };
}

/** The record in a node's data, and its nonce; null for a node that holds something else. */
export function readLockRecord(data: Buffer): { nonce: string; record: LockRecord } | null {
  try {
    const { mark, grants, graves } = JSON.parse(data.toString()) as Record<string, unknown>;
    if (typeof mark !== "string" || !NONCE.test(mark)) return null;
    if (!isObject(grants) || !isObject(graves)) return null;
    const tombstones = new Map(Object.entries(graves as Record<string, number>));
    return { nonce: mark, record: { grants: grants as LockRecord["grants"], tombstones } };
  } catch {
    // Not even JSON.
    return null;
  }
}

/** In a node's data the nonce is called mark, and tombstones are called graves. */
export function writeLockRecord(nonce: string, { grants, tombstones }: LockRecord): Buffer {
  const graves = Object.fromEntries(tombstones);
  return Buffer.from(JSON.stringify({ mark: nonce, grants, graves }));
}

/** How many bytes the data of the node takes. */
export function sizeOf(record: LockRecord): number {
  return writeLockRecord("", record).length;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

export function isEmpty({ grants, tombstones }: LockRecord): boolean {
  return Object.keys(grants).length + tombstones.size === 0;
}

export function newGrant(claim: Claim, token: bigint): RecordedGrant {
  const { mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
  const terms = { mode, limit, tokens, ttlMs, lockDelayMs, label };
  const fresh = { beat: 0, order: 0, index: 0, revoked: false, left: false };
  return { ...terms, token: String(token), ...fresh };
}

export function tokenInUse({ token, index }: RecordedGrant): bigint {
  return BigInt(token) + BigInt(index);
}

export function leftAt({ leftAt }: RecordedGrant): LeaderTime | null {
  return leftAt === undefined ? null : { atMs: BigInt(leftAt[0]), zxid: BigInt(leftAt[1]) };
}

/**
 * Adds the time to grants that were left behind in an earlier write. The client that left them
 * behind did not know the leader's time of its write. The record that it wrote has that time, as
 * long as nobody writes again.
 */
export function withLeftAt(
  next: LockRecord,
  before: LockRecord,
  { atMs, zxid }: LeaderTime,
): LockRecord {
  const since = [String(atMs), String(zxid)] as const;
  let { grants } = next;
  for (const [hash, grant] of Object.entries(grants)) {
    const isNew = before.grants[hash]?.beat !== grant.beat;
    if (!grant.left || grant.leftAt !== undefined || isNew) continue;
    grants = { ...grants, [hash]: { ...grant, leftAt: since } };
  }
  return { ...next, grants };
}

export function withGrant(record: LockRecord, hash: string, grant: RecordedGrant): LockRecord {
  return { ...record, grants: { ...record.grants, [hash]: grant } };
}

export function withoutGrant(record: LockRecord, hash: string): LockRecord {
  const { [hash]: _, ...grants } = record.grants;
  return { ...record, grants };
}

export function withTombstone(record: LockRecord, hash: string, forMs: number): LockRecord {
  record.tombstones.set(hash, forMs);
  return record;
}

/** Who holds, and who was revoked. A renewal does not change it, so renewals wake nobody. */
export function signatureOf({ grants }: LockRecord): string {
  const all = Object.entries(grants).map(([hash, { revoked }]) => `${hash}${revoked ? "!" : ""}`);
  return all.sort().join(" ");
}
