import type { KeyRange } from "../queue/keys.js";

/** The parts of the JSON gateway that are used here. Numbers are decimal strings. */
export interface Compare {
  readonly key: string;
  readonly range_end?: string;
  readonly target: "CREATE" | "MOD" | "VALUE";
  readonly result: "EQUAL" | "GREATER";
  readonly create_revision?: string;
  readonly mod_revision?: string;
  readonly value?: string;
}

export type Op = Readonly<Record<string, object>>;

export interface Txn {
  readonly compare: readonly Compare[];
  readonly success: readonly Op[];
  readonly failure: readonly Op[];
}

export interface Header {
  readonly revision?: string;
  readonly raft_term?: string;
}

interface RawKeyValue {
  readonly key: string;
  readonly value?: string;
  readonly create_revision?: string;
  readonly mod_revision?: string;
  readonly lease?: string;
}

interface RawRange {
  readonly header: Header;
  readonly kvs?: readonly RawKeyValue[];
  readonly more?: boolean;
  readonly count?: string;
}

export interface RawTxn {
  readonly header: Header;
  readonly succeeded?: boolean;
  readonly responses?: readonly {
    readonly response_range?: RawRange;
    readonly response_txn?: RawTxn;
  }[];
}

/** A key as it is stored. */
export interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly created: bigint;
  readonly modified: string;
  /** "0" without a lease. */
  readonly lease: string;
}

export interface RangeOptions {
  readonly limit?: number;
  /** By creation; by key when left out. */
  readonly order?: "ASCEND" | "DESCEND";
  readonly createdBefore?: bigint;
}

/** Counts the keys of a range without reading them: etcd reads no value for that. */
export function countKeys({ start, end }: KeyRange): Op {
  return { request_range: { key: toBase64(start), range_end: toBase64(end), count_only: true } };
}

export function put(key: string, value: string | null, lease: string): Op {
  const content = value === null ? { ignore_value: true } : { value: toBase64(value) };
  return { request_put: { key: toBase64(key), ...content, lease } };
}

export function del(key: string): Op {
  return { request_delete_range: { key: toBase64(key) } };
}

export function get(key: string): Op {
  return { request_range: { key: toBase64(key) } };
}

export function range(keyRange: KeyRange, options: RangeOptions = {}): Op {
  const { start, end } = keyRange;
  const { limit, order, createdBefore } = options;
  const request = {
    key: toBase64(start),
    range_end: toBase64(end),
    ...(limit === undefined ? {} : { limit: String(limit) }),
    ...(order === undefined ? {} : { sort_order: order, sort_target: "CREATE" }),
    ...(createdBefore === undefined ? {} : { max_create_revision: String(createdBefore - 1n) }),
  };
  return { request_range: request };
}

export function nested(txn: Txn): Op {
  return { request_txn: txn };
}

export function absent(key: string): Compare {
  return created(key, 0n);
}

export function present(key: string): Compare {
  return { key: toBase64(key), target: "CREATE", result: "GREATER", create_revision: "0" };
}

export function created(key: string, revision: bigint): Compare {
  return {
    key: toBase64(key),
    target: "CREATE",
    result: "EQUAL",
    create_revision: String(revision),
  };
}

export function unchanged({ key, modified }: Pick<KeyValue, "key" | "modified">): Compare {
  return { key: toBase64(key), target: "MOD", result: "EQUAL", mod_revision: modified };
}

/** The key exists, and its value sorts after this text in byte order. */
export function valueAfter(key: string, start: string): Compare {
  return { key: toBase64(key), target: "VALUE", result: "GREATER", value: toBase64(start) };
}

/** Compares every key of a range. In an empty range the missing key counts as created at 0. */
export function empty({ start, end }: KeyRange): Compare {
  return { ...created(start, 0n), range_end: toBase64(end) };
}

/** No key in the range is older than this revision. */
export function oldestIs({ start, end }: KeyRange, revision: bigint): Compare {
  return {
    ...present(start),
    range_end: toBase64(end),
    create_revision: String(revision - 1n),
  };
}

/** The keys that the i-th operation of a transaction found. */
export function found(txn: RawTxn, i: number): KeyValue[] {
  return keyValues(txn.responses?.[i]?.response_range);
}

export function countOf(txn: RawTxn, i: number): number {
  return Number(txn.responses?.[i]?.response_range?.count ?? 0);
}

function keyValues(raw: RawRange | undefined): KeyValue[] {
  return (raw?.kvs ?? []).map((kv) => ({
    key: fromBase64(kv.key),
    value: fromBase64(kv.value ?? ""),
    created: BigInt(kv.create_revision ?? 0),
    modified: kv.mod_revision ?? "0",
    lease: kv.lease ?? "0",
  }));
}

export function toBase64(plain: string): string {
  return Buffer.from(plain).toString("base64");
}

export function fromBase64(encoded: string): string {
  return Buffer.from(encoded, "base64").toString();
}
