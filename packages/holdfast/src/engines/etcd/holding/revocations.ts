import type { RevokeRef } from "../../../engine.js";
import { EngineError, UnsupportedError } from "../../../errors.js";
import type { EtcdClient } from "../client/client.js";
import { isLeaseGone } from "../client/failure.js";
import {
  type Compare,
  del,
  type KeyValue,
  type Op,
  put,
  type RawTxn,
  unchanged,
} from "../client/requests.js";
import type { Leases } from "../leases/leases.js";
import { type KeyRecord, writeRecord } from "../queue/key-record.js";
import { hashOf, type Keys, markerOf } from "../queue/keys.js";
import { type QueueMember, tokenInUse } from "../queue/queue.js";
import type { QueueReader } from "../queue/queue-reader.js";

const MOST_CHANGES = 5;
const NOTE_MS = 10_000;

/** Forbids the renewal of one grant, or ends it, and notifies its holder. */
export class Revocations {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #queueReader: QueueReader;
  readonly #leases: Leases;

  constructor(client: EtcdClient, keys: Keys, queueReader: QueueReader, leases: Leases) {
    this.#client = client;
    this.#keys = keys;
    this.#queueReader = queueReader;
    this.#leases = leases;
  }

  async revoke(ref: RevokeRef, deadline: number): Promise<"revoked" | "gone"> {
    for (let changes = 0; changes < MOST_CHANGES; changes++) {
      const queue = await this.#queueReader.queue(ref.resource, deadline);
      const holder = queue.holders.find((member) => tokenInUse(member) === ref.token);
      if (holder === undefined) return "gone";
      if (holder.record?.revoked && !ref.force) return "revoked";
      if (await this.#end(ref, holder, deadline)) return "revoked";
    }
    throw new EngineError("a grant changes faster than it can be revoked", {
      effect: "none",
      retryable: true,
    });
  }

  /** False if the grant has changed since it was read. */
  async #end(
    { resource, force }: RevokeRef,
    holder: QueueMember,
    deadline: number,
  ): Promise<boolean> {
    const { record, key } = holder;
    if (force) {
      const note = await this.#note(resource, holder, deadline);
      const success = [del(key), del(markerOf(key)), ...note];
      // Only if unchanged: the lease may have been passed on, and then another holder uses it.
      const answer = await this.#send({ compare: [unchanged(holder)], success }, deadline);
      return answer.succeeded === true;
    }
    if (record === null) {
      throw new UnsupportedError(
        `"${resource}" is held by another program, which cannot be told; force ends its grant`,
      );
    }
    const revoked = await this.#markRevoked(resource, holder, record, deadline);
    if (revoked === null) return false;
    await this.#letExpire(revoked, record, deadline).catch(afterTheFact);
    return true;
  }

  /**
   * Revokes the grant on its current lease: from this moment no renewal counts. The remaining time
   * is measured after that, because a renewal in between would let the holder count on more. Null
   * if the grant has changed since it was read.
   */
  async #markRevoked(
    resource: string,
    holder: QueueMember,
    record: KeyRecord,
    deadline: number,
  ): Promise<KeyValue | null> {
    const value = writeRecord({ ...record, revoked: true });
    const note = await this.#note(resource, holder, deadline);
    const success = [put(holder.key, value, holder.lease), ...note];
    try {
      const answer = await this.#send({ compare: [unchanged(holder)], success }, deadline);
      const modified = answer.header.revision ?? "0";
      return answer.succeeded ? { ...holder, value, modified } : null;
    } catch (error) {
      // Its lease has ended, and its key with it.
      if (isLeaseGone(error)) return null;
      throw error;
    }
  }

  /**
   * Other grants keep the lease alive, so the revoked grant moves to a lease of its own. That lease
   * lasts no less than what the old one has left: the holder may not know yet. The marker moves
   * too, and ends a lock-delay later. A grant that was released or passed on since is left alone.
   */
  async #letExpire(revoked: KeyValue, record: KeyRecord, deadline: number): Promise<void> {
    const { key, value } = revoked;
    const left = await this.#leases.remainingOf(revoked, deadline);
    if (left === null) return;
    const own = await this.#leases.expiring(left.mostMs, deadline);
    const success = [put(key, value, own.id)];
    if (record.lockDelayMs > 0 && record.claimed) {
      const marker = await this.#leases.expiring(own.ttlMs + record.lockDelayMs, deadline);
      success.push(put(markerOf(key), "", marker.id));
    }
    await this.#send({ compare: [unchanged(revoked)], success }, deadline);
  }

  async #note(resource: string, { record, key }: QueueMember, deadline: number): Promise<Op[]> {
    if (record === null) return [];
    const { id } = await this.#leases.expiring(NOTE_MS, deadline);
    return [put(`${this.#keys.notes(record.engine).start}${hashOf(key)}`, resource, id)];
  }

  #send(txn: { compare: Compare[]; success: Op[] }, deadline: number): Promise<RawTxn> {
    return this.#client.txn({ ...txn, failure: [] }, { deadline, repeatable: false });
  }
}

/** The grant is already revoked when a later step fails, so the effect is not "none". */
function afterTheFact(error: unknown): never {
  if (!(error instanceof EngineError)) throw error;
  const { message, retryable, reason } = error;
  throw new EngineError(message, { effect: "unknown", retryable, reason, cause: error });
}

/** Whether a token is in this member's range. */
export function owns({ created: revision, record }: QueueMember, token: bigint): boolean {
  return token >> 10n === revision && Number(token & 1023n) < (record?.tokens ?? 1);
}
