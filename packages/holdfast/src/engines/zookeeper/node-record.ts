import type { Claim, Mode } from "../../engine.js";
import { EngineError } from "../../errors.js";

/** The number of tokens of a grant. A token is its node's number times this, plus an index. */
export const TOKEN_RANGE = 1024;
// 63 bits minus ten for the index. The upper part counts elections: two million of them fit.
const LARGEST_ZXID = 2n ** 53n - 1n;

/** The data of a member's node. */
export interface NodeRecord {
  readonly mode: Mode;
  readonly tokens: number;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly label: string;
  /** The index of the token in use. */
  readonly index: number;
  readonly revoked: boolean;
}

export function writeRecord(claim: Claim, ttlMs: number): Buffer {
  const { mode, limit, tokens, lockDelayMs, label } = claim;
  return Buffer.from(JSON.stringify({ mode, limit, tokens, ttlMs, lockDelayMs, label }));
}

/** The same record with these changes. */
export function amended(
  data: Buffer,
  changes: Partial<Pick<NodeRecord, "ttlMs" | "index" | "revoked">>,
): Buffer {
  return Buffer.from(JSON.stringify({ ...parse(data), ...changes }));
}

/** Other libraries write other data, which then becomes the label. */
export function readRecord(data: Buffer): NodeRecord {
  const known = parse(data);
  return {
    mode: known.mode === "shared" ? "shared" : "exclusive",
    tokens: count(known.tokens, 1),
    ttlMs: count(known.ttlMs, 0),
    lockDelayMs: count(known.lockDelayMs, 0),
    label: typeof known.label === "string" ? known.label : data.toString(),
    index: count(known.index, 0),
    revoked: known.revoked === true,
  };
}

/** Whether Holdfast wrote this data, and not another library on the same locks. */
export function isOurRecord(data: Buffer): boolean {
  return typeof parse(data).mode === "string";
}

/** The first token of a grant whose node was created by this transaction. */
export function tokenOf(czxid: bigint): bigint {
  if (czxid <= LARGEST_ZXID) return czxid * BigInt(TOKEN_RANGE);
  throw new EngineError(
    `ZooKeeper's transactions have reached ${czxid}, and tokens of 63 bits end at ${LARGEST_ZXID}`,
    { effect: "unknown", retryable: false },
  );
}

function parse(data: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(data.toString());
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function count(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : otherwise;
}
