import type { HoldfastError } from "../errors.js";

/** What the routines give: arrays whose first element says what the rest is. Their headers tell. */
export type Raw = readonly unknown[];

/** One operation for the routine `run`; its header says which verb takes what. */
export interface Operation {
  readonly verb: "acquire" | "enqueue" | "release" | "withdraw" | "revoke";
  readonly name: string;
  readonly [field: string]: unknown;
}

export interface Beat {
  readonly name: string;
  readonly id: string;
  readonly beat: number;
}

export interface Renewal {
  readonly name: string;
  readonly id: string;
  readonly ttlMs: number;
}

/** How long the head of a line sleeps between looks, and where its process listens ("" if nowhere). */
export interface Hearing {
  readonly channel: string;
  readonly paceMs: number;
}

/**
 * What an engine asks of its database. Each is one statement and one transaction, decided at the
 * server: a client that is paused half-way holds nobody up.
 */
export interface Database {
  /** waitMs: how long to wait for others who are at work on the same resources. */
  run(operations: readonly Operation[], waitMs: number, limitMs: number): Promise<readonly Raw[]>;
  heartbeat(
    beats: readonly Beat[],
    hearing: Hearing,
    waitMs: number,
    limitMs: number,
  ): Promise<readonly Raw[]>;
  renew(renewals: readonly Renewal[], limitMs: number): Promise<readonly Raw[]>;
  check(name: string, shared: boolean, token: bigint, limitMs: number): Promise<boolean>;
  look(name: string, limitMs: number): Promise<Raw>;
  page(after: string, most: number, limitMs: number): Promise<readonly (readonly [string, Raw])[]>;
  /** locked: another transaction has the resource. conflict: rolled back for another's sake. */
  failure(error: unknown): { readonly why: "locked" | "conflict" | "other"; error: HoldfastError };
  close(): Promise<void>;
}
