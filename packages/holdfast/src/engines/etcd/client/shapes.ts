import type { KeyRecord } from "../queue/key-record.js";
import { malformed } from "./failure.js";
import { parsed } from "./gateway-protocol.js";
import type { Op, RawTxn, Txn } from "./requests.js";

/**
 * The exact shapes of etcd's answers. The gateway omits fields that are zero, false or empty, so
 * missing fields are derived from the request: a transaction has one answer for each operation of
 * the branch that was taken, of that operation's kind. Any other shape is malformed.
 */
export type Check<T> = (answer: unknown) => T;

/** An answer about one lease. Omitted fields are 0. */
export interface LeaseAnswer {
  readonly header: { readonly raft_term: string };
  readonly ID: string;
  readonly TTL?: string;
  readonly grantedTTL?: string;
}

export interface WatchMessage {
  readonly created?: boolean;
  readonly canceled?: boolean;
  /** Set if the watch was canceled because its start revision was compacted. */
  readonly compact_revision?: string;
  readonly events?: readonly {
    /** Omitted for a put. */
    readonly type?: "PUT" | "DELETE";
    readonly kv: { readonly key: string; readonly value?: string; readonly mod_revision: string };
  }[];
}

type Fields = Readonly<Record<string, unknown>>;

export function txnAnswer(txn: Txn): Check<RawTxn> {
  return (answer) => {
    const fields = object(answer, "an answer");
    header(fields.header);
    branch(fields, txn);
    return answer as RawTxn;
  };
}

/**
 * Checks the answer about a new lease (id null), which has a ttl, or about the lease with this id.
 */
export function leaseAnswer(id: string | null): Check<LeaseAnswer> {
  return (answer) => {
    const fields = object(answer, "an answer");
    header(fields.header);
    number(fields.ID, "ID");
    if (id === null) number(fields.TTL, "TTL");
    else if (fields.ID !== id) throw malformed("the answer is about another lease");
    optional(fields, ["TTL", "grantedTTL"], number);
    return answer as LeaseAnswer;
  };
}

export function tokenAnswer(answer: unknown): string {
  return string(object(answer, "an answer").token, "token");
}

/** Null for the message with which a stream reports its failure. */
export function watchMessage(message: unknown): WatchMessage | null {
  const { result, error } = object(message, "a message");
  if (error !== undefined) return null;
  const fields = object(result, "result");
  header(fields.header);
  optional(fields, ["created", "canceled"], boolean);
  optional(fields, ["compact_revision"], number);
  for (const event of list(fields.events)) {
    const { type = "PUT", kv } = object(event, "an event");
    if (type !== "PUT" && type !== "DELETE") throw malformed("an event of an unknown kind");
    const { key, value, mod_revision } = object(kv, "kv");
    string(key, "key");
    number(mod_revision, "mod_revision");
    if (value !== undefined) string(value, "value");
  }
  return result as WatchMessage;
}

const RECORD: Record<keyof KeyRecord, readonly string[]> = {
  mode: ["string"],
  limit: ["number", "null"],
  ttlMs: ["number"],
  lockDelayMs: ["number"],
  tokens: ["number"],
  label: ["string"],
  engine: ["string"],
  claimed: ["boolean"],
  revoked: ["boolean"],
  order: ["number"],
  index: ["number"],
  left: ["boolean"],
};

/** The record in one of our keys. Another program may have written it. */
export function recordIn(value: string): KeyRecord {
  const fields = object(parsed(value), "the value of a key");
  for (const [name, types] of Object.entries(RECORD)) {
    const found = fields[name];
    if (!types.includes(found === null ? "null" : typeof found)) {
      throw malformed(`the value of a key has no ${name}`);
    }
  }
  if (fields.mode !== "exclusive" && fields.mode !== "shared") {
    throw malformed("the value of a key has an unknown mode");
  }
  return fields as unknown as KeyRecord;
}

function branch(fields: Fields, txn: Txn): void {
  optional(fields, ["succeeded"], boolean);
  const asked = fields.succeeded === true ? txn.success : txn.failure;
  const answers = list(fields.responses);
  if (answers.length !== asked.length) {
    throw malformed(`${answers.length} answers to ${asked.length} operations`);
  }
  for (const [i, op] of asked.entries()) operation(object(answers[i], "a response"), op);
}

function operation(answer: Fields, op: Op): void {
  const [asked] = Object.entries(op);
  const [kind, request] = asked!;
  const fields = object(answer[kind.replace("request_", "response_")], "a response of its kind");
  object(fields.header, "header");
  const isFiltered = "max_create_revision" in request || "count_only" in request;
  if (kind === "request_range") keysIn(fields, isFiltered);
  if (kind === "request_txn") branch(fields, request as Txn);
}

/** Keys that were filtered out are still counted. */
function keysIn(fields: Fields, isFiltered = false): void {
  const kvs = list(fields.kvs);
  for (const kv of kvs) {
    const { key, value, create_revision, mod_revision, lease } = object(kv, "kv");
    string(key, "key");
    number(create_revision, "create_revision");
    number(mod_revision, "mod_revision");
    if (value !== undefined) string(value, "value");
    if (lease !== undefined) number(lease, "lease");
  }
  optional(fields, ["count"], number);
  optional(fields, ["more"], boolean);
  const missing = Number(fields.count ?? 0) - kvs.length;
  // Only a limit omits keys, and then the answer says that there are more.
  if (missing < 0 || (missing > 0 && fields.more !== true && !isFiltered)) {
    throw malformed(`${kvs.length} keys, and not as many as it says`);
  }
}

function header(value: unknown): void {
  const fields = object(value, "header");
  for (const name of ["cluster_id", "member_id", "revision", "raft_term"]) {
    number(fields[name], name);
  }
}

function object(value: unknown, what: string): Fields {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Fields;
  throw malformed(`${what} is no object`);
}

function list(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw malformed("a list is none");
}

function string(value: unknown, what: string): string {
  if (typeof value === "string") return value;
  throw malformed(`${what} is no text`);
}

function number(value: unknown, what: string): void {
  if (typeof value === "string" && /^-?\d{1,20}$/.test(value)) return;
  throw malformed(`${what} is no number`);
}

function boolean(value: unknown, what: string): void {
  if (typeof value !== "boolean") throw malformed(`${what} is neither true nor false`);
}

function optional(
  fields: Fields,
  names: readonly string[],
  check: (value: unknown, what: string) => void,
): void {
  for (const name of names) if (fields[name] !== undefined) check(fields[name], name);
}
