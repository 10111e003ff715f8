import type { Gone } from "../../../engine.js";
import type { KeyValue, RawTxn } from "../client/requests.js";
import type { LeasePair } from "../leases/lease-pool.js";
import { type KeyRecord, writeRecord } from "./key-record.js";
import type { Predecessor, QueueMember } from "./queue.js";

/** What etcd says about a claim. */
export type QueueAnswer = Holds | Waits | Refused | Gone;

export interface Holds {
  readonly kind: "holds";
  readonly self: KeyValue;
  readonly record: KeyRecord;
  /** The lease of its marker, if this call has just put one. */
  readonly marker: string | null;
}

export interface Waits {
  readonly kind: "waits";
  readonly self: KeyValue;
  /** Null where the queue is too long to be read for this waiter. */
  readonly position: number | null;
  readonly holders: readonly QueueMember[];
  /** Keys whose end may give it its turn; null where they have not changed. */
  readonly before: readonly Predecessor[] | null;
  /** The only key it waits for, if its end is the turn without asking the server. */
  readonly lastBefore: Predecessor | null;
  /** When the queue was read; now if it is left out. */
  readonly readAt?: number;
}

/** Somebody else holds, and the claim does not want to wait. */
export interface Refused {
  readonly kind: "busy";
  readonly holders: readonly QueueMember[];
}

/** The answer for a holder's key that a transaction has just written. */
export function holdsAfter(
  { header }: RawTxn,
  { key, created }: Predecessor,
  record: KeyRecord,
  { lease, marker }: LeasePair,
): Holds {
  const modified = header.revision ?? "0";
  const self = { key, value: writeRecord(record), created, modified, lease: lease.id };
  return { kind: "holds", self, record, marker: marker?.id ?? null };
}

/** The answer for a claim that was revoked or left behind; null for others. */
export function overAnswer({ revoked, left }: KeyRecord): Gone | null {
  if (revoked) return { kind: "gone", why: "revoked" };
  return left ? { kind: "gone", why: "unknown" } : null;
}
