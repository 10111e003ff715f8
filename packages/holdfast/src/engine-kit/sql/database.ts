import type { HoldfastError } from "../../errors.js";

/**
 * What a routine returns: a list whose first element says what the rest is. The header of each
 * routine describes it.
 */
export type RawAnswer = readonly unknown[];

/**
 * One operation for the routine `run`. The header of each verb's routine says which fields it
 * takes.
 */
export interface SqlOperation {
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

/**
 * How a waiter learns of its turn: how long the head of a queue sleeps between polls, and the
 * channel on which its process listens ("" if it does not).
 */
export interface Wakeup {
  readonly channel: string;
  readonly pollMs: number;
}

/**
 * What an engine asks of its database. Each method is one statement and one transaction, decided
 * at the server, so a client that is paused half-way blocks nobody. Results of type unknown came
 * over the wire, and the caller checks their exact shape.
 */
export interface Database {
  /** waitMs: how long to wait for other transactions that have locked the same resources. */
  run(operations: readonly SqlOperation[], waitMs: number, limitMs: number): Promise<unknown>;
  heartbeat(
    heartbeats: readonly Heartbeat[],
    wakeup: Wakeup,
    waitMs: number,
    limitMs: number,
  ): Promise<unknown>;
  /** order: the number of the call. The server ignores a renewal that arrives after a later one. */
  renew(renewals: readonly Renewal[], order: number, limitMs: number): Promise<unknown>;
  check(name: string, shared: boolean, token: bigint, limitMs: number): Promise<boolean>;
  look(name: string, limitMs: number): Promise<unknown>;
  /** Resources whose names have this prefix, in byte order. */
  page(after: string, prefix: string, most: number, limitMs: number): Promise<unknown>;
  /**
   * locked: another transaction has locked the resource. conflict: the server rolled this
   * transaction back in favour of another one.
   */
  failure(error: unknown): { readonly why: "locked" | "conflict" | "other"; error: HoldfastError };
  close(): Promise<void>;
}
