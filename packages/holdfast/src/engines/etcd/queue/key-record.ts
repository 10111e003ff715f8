import type { Claim, Mode } from "../../../engine.js";
import type { KeyValue } from "../client/requests.js";
import { recordIn } from "../client/shapes.js";
import { isOurs } from "./keys.js";

/** What a key says about its grant or waiter. Nothing in it is secret. */
export interface KeyRecord {
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

export function newRecord(claim: Claim, engine: string, claimed: boolean): KeyRecord {
  const { mode, limit, ttlMs, lockDelayMs, tokens, label } = claim;
  return {
    ...{ mode, limit, ttlMs, lockDelayMs, tokens, label, engine, claimed },
    ...{ revoked: false, order: 0, index: 0, left: false },
  };
}

/**
 * JSON. For a grant that was left behind it begins with a space, so that a transaction can
 * recognise it by comparing: in byte order it sorts before IN_USE, and all other entries sort
 * after.
 */
export function writeRecord(record: KeyRecord): string {
  return `${record.left ? " " : ""}${JSON.stringify(record)}`;
}

/** Sorts between entries that were left behind and entries in use. */
export const IN_USE = "!";

/**
 * Null for another program's key. A key with a name like ours must hold a record like ours, or it
 * throws.
 */
export function readRecord({ key, value }: Pick<KeyValue, "key" | "value">): KeyRecord | null {
  return isOurs(key) ? recordIn(value) : null;
}
