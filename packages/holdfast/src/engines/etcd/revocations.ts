import type { RevokeRef } from "../../engine.js";
import { EngineError, UnsupportedError } from "../../errors.js";
import type { EtcdClient } from "./client.js";
import { hashOf, type Keys, markerOf } from "./keys.js";
import type { Leases } from "./leases.js";
import { type Entry, type Member, tokenInUse, writeEntry } from "./line.js";
import type { Readings } from "./readings.js";
import { type Compare, del, type Op, put, unchanged } from "./requests.js";

const MOST_CHANGES = 5;
const NOTE_MS = 10_000;

/** Forbids the renewal of one grant, or ends it, and leaves word for its holder. */
export class Revocations {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #readings: Readings;
  readonly #leases: Leases;

  constructor(client: EtcdClient, keys: Keys, readings: Readings, leases: Leases) {
    this.#client = client;
    this.#keys = keys;
    this.#readings = readings;
    this.#leases = leases;
  }

  async revoke(ref: RevokeRef, deadline: number): Promise<"revoked" | "gone"> {
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const line = await this.#readings.line(ref.resource, deadline);
      const holder = line.holders.find((member) => tokenInUse(member) === ref.token);
      if (holder === undefined) return "gone";
      if (holder.entry?.revoked && !ref.force) return "revoked";
      if (await this.#end(ref, holder, deadline)) return "revoked";
    }
    throw new EngineError("a grant changes faster than it can be revoked", {
      effect: "none",
      retryable: true,
    });
  }

  /** False when the grant has changed meanwhile. */
  async #end({ resource, force }: RevokeRef, holder: Member, deadline: number): Promise<boolean> {
    const { entry, key } = holder;
    if (force) {
      const note = await this.#note(resource, holder, deadline);
      const success = [del(key), del(markerOf(key)), ...note];
      // Unchanged, as it may have been passed on meanwhile, and then another one is at work.
      return this.#txn({ compare: [unchanged(holder)], success }, deadline);
    }
    if (entry === null) {
      throw new UnsupportedError(
        `"${resource}" is held by another program, which cannot be told; force ends its grant`,
      );
    }
    const ending = await this.#let(holder, entry, deadline);
    if (ending === null) return false;
    const success = [...ending, ...(await this.#note(resource, holder, deadline))];
    return this.#txn({ compare: [unchanged(holder)], success }, deadline);
  }

  /**
   * Its lease lives on as long as others on it are renewed; so the grant goes to a lease of its own, for
   * what the old one has left and no less: its holder may not have heard yet. Its mark follows, to end a
   * lock-delay later. Null when it has changed.
   */
  async #let(member: Member, entry: Entry, deadline: number): Promise<Op[] | null> {
    const { key } = member;
    const left = await this.#leases.leftOf(member, deadline);
    if (left === null) return null;
    const { mostMs } = left;
    const revoked = writeEntry({ ...entry, revoked: true });
    const own = await this.#leases.dying(mostMs, deadline);
    if (entry.lockDelayMs === 0 || !entry.claimed) return [put(key, revoked, own.id)];
    const mark = await this.#leases.dying(own.ttlMs + entry.lockDelayMs, deadline);
    return [put(key, revoked, own.id), put(markerOf(key), "", mark.id)];
  }

  async #note(resource: string, { entry, key }: Member, deadline: number): Promise<Op[]> {
    if (entry === null) return [];
    const { id } = await this.#leases.dying(NOTE_MS, deadline);
    return [put(`${this.#keys.notes(entry.engine).start}${hashOf(key)}`, resource, id)];
  }

  async #txn(txn: { compare: Compare[]; success: Op[] }, deadline: number): Promise<boolean> {
    const options = { deadline, repeatable: false };
    const answer = await this.#client.txn({ ...txn, failure: [] }, options);
    return answer.succeeded === true;
  }
}

/** Whether a token is of this member's range. */
export function owns({ created: revision, entry }: Member, token: bigint): boolean {
  return token >> 10n === revision && Number(token & 1023n) < (entry?.tokens ?? 1);
}
