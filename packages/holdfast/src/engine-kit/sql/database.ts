import type { HoldfastError } from "../../errors.js";

/** What the routines give: lists whose first element says what the rest is. Their headers tell. */
export type RawAnswer = readonly unknown[];

/** One operation for the routine `run`; its header says which verb takes what. */
export interface Operation {
  readonly verb: "acquire" | "enqueue" | "release" | "withdraw" | "revoke";
  readonly name: string;
  readonly [field: string]: unknown;
}

export interface Heartbeat {
  readonly name: string;
  readonly id: string;
  readonly beat: number;
}

export interface Renewal {
  readonly name: string;
  readonly id: string;
  readonly ttlMs: number;
  readonly index: number;
  readonly leave: boolean;
}

/** How long the head of a line sleeps between looks, and where its process listens ("" if nowhere). */
export interface Wakeup {
  readonly channel: string;
  readonly pollMs: number;
}

/**
 * What an engine asks of its database. Each is one statement and one transaction, decided at the
 * server: a client that is paused half-way holds nobody up. What is of type unknown came over a wire, and
 * whoever asked reads it by its exact shape.
 */
export interface Database {
  /** waitMs: how long to wait for others who are at work on the same resources. */
  run(operations: readonly Operation[], waitMs: number, limitMs: number): Promise<unknown>;
  heartbeat(
    heartbeats: readonly Heartbeat[],
    wakeup: Wakeup,
    waitMs: number,
    limitMs: number,
  ): Promise<unknown>;
  /** order: of the call, by which late ones are known. */
  renew(renewals: readonly Renewal[], order: number, limitMs: number): Promise<unknown>;
  check(name: string, shared: boolean, token: bigint, limitMs: number): Promise<boolean>;
  look(name: string, limitMs: number): Promise<unknown>;
  /** Of names with this prefix, in the order of bytes. */
  page(after: string, prefix: string, most: number, limitMs: number): Promise<unknown>;
  /** locked: another transaction has the resource. conflict: rolled back for another's sake. */
  failure(error: unknown): { readonly why: "locked" | "conflict" | "other"; error: HoldfastError };
  close(): Promise<void>;
}
