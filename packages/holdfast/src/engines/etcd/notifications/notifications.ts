import { systemClock } from "../../../core/runtime/clock.js";
import { emit } from "../../../events.js";
import type { EtcdClient, Stream } from "../client/client.js";
import { Reopening } from "../client/reopening.js";
import { found, fromBase64, get, type Op, range, toBase64 } from "../client/requests.js";
import type { WatchMessage } from "../client/shapes.js";
import type { HeldGrant, TrackedClaims } from "../holding/tracked-claims.js";
import type { Leases } from "../leases/leases.js";
import { type Keys, leaseOfCanary } from "../queue/keys.js";
import { creation } from "./watches.js";

/** Core asks by itself after this time. */
const ASK_MS = 2_000;
const MOST_GETS = 100;
const PART_MS = 10;

type ChangeListener = (resource: string) => void;

/**
 * Tells the holders of this process, before their next renewal, that a grant was revoked or that
 * its lease has ended.
 *
 * All grants with the same ttl are on one etcd lease, and its end deletes all their keys at once.
 * We need not be the cause: any client with the rights can revoke the lease, and so does a leader
 * that hung for longer than the ttl when it is back, because it never heard of the keepalives that
 * its successor acknowledged (etcd-io/etcd#12528, #15247). So each lease has one more key, its
 * canary, in the key range of this engine's notes. The stream that reports notes also reports the
 * deletion of the canary.
 */
export class Notifications {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #engineId: string;
  readonly #leases: Leases;
  readonly #trackedClaims: TrackedClaims;
  readonly #listeners = new Set<ChangeListener>();
  /** Grants on a lease that has ended, about which core does not know yet. */
  readonly #unreported = new Set<HeldGrant>();
  readonly #reopening = new Reopening();
  readonly #reopen = () => this.#open();
  readonly #compareAgain = () => void this.#compare();
  #stream: Stream | null = null;
  /** The first revision not received yet; 0 means from now on. Null before the first grant. */
  #next: bigint | null = null;
  /** Whether events may have been missed since the stream was last open. */
  #wasAway = false;
  #closed = false;

  constructor(
    client: EtcdClient,
    keys: Keys,
    engineId: string,
    leases: Leases,
    trackedClaims: TrackedClaims,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#engineId = engineId;
    this.#leases = leases;
    this.#trackedClaims = trackedClaims;
    leases.onEnd = (id) => void this.#leaseEnded(id);
  }

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Starts after the revision of the first grant or waiter, whose canary is older. */
  listen(revision: bigint): void {
    if (this.#next !== null || this.#closed) return;
    this.#next = revision + 1n;
    this.#open();
  }

  /** A grant is on a lease without a canary or without keepalives: a renewal by core moves it. */
  notifySoon(resource: string): void {
    // Not before core has heard of the grant itself.
    setImmediate(() => this.#notify(resource));
  }

  /** The client now sends calls to another member. */
  move(): void {
    if (this.#next === null) return;
    this.#wasAway = true;
    this.#reopening.later(this.#reopen);
  }

  close(): void {
    this.#closed = true;
    this.#listeners.clear();
    this.#reopening.close();
    this.#stream?.close();
  }

  #open(): void {
    this.#stream?.close();
    const { start, end } = this.#keys.notes(this.#engineId);
    const from = this.#next ? { start_revision: String(this.#next) } : {};
    const isCurrent = () => this.#stream === stream && !this.#closed;
    const stream = this.#client.stream(
      creation({ key: toBase64(start), range_end: toBase64(end), ...from }),
      (message) => isCurrent() && this.#onMessage(message),
      () => isCurrent() && this.#lost(),
    );
    this.#stream = stream;
  }

  #onMessage({ created, canceled, compact_revision, events = [] }: WatchMessage): void {
    for (const { type, kv } of events) {
      const key = fromBase64(kv.key);
      this.#next = BigInt(kv.mod_revision) + 1n;
      const lease = leaseOfCanary(key);
      if (lease !== null && type === "DELETE") void this.#leaseEnded(lease);
      if (lease === null && type !== "DELETE") this.#notify(fromBase64(kv.value ?? ""));
    }
    if (canceled) {
      // Compacted events cannot be received any more, so the keys are read instead, as after any
      // gap.
      if (compact_revision !== undefined) this.#next = 0n;
      this.#lost();
      // If the stream was refused for an expired token, this call finds out and fetches a new one.
      void this.#compare();
    } else if (created) {
      this.#reopening.opened();
      if (this.#wasAway) void this.#compare();
      this.#wasAway = false;
    }
  }

  #lost(): void {
    this.#wasAway = true;
    this.#stream?.close();
    this.#reopening.later(this.#reopen);
  }

  /**
   * etcd resends missed events slowly, and never compacted ones. Reading the keys shows the state
   * at once.
   */
  async #compare(): Promise<void> {
    // Collected first: a lease that is made during this read has a canary that the read cannot see.
    const leases = new Set([...this.#trackedClaims.leases(), ...this.#leases.ids()]);
    try {
      const [there = []] = await this.#read([range(this.#keys.notes(this.#engineId))]);
      for (const { key, value } of there) {
        const lease = leaseOfCanary(key);
        if (lease === null) this.#notify(value);
        else leases.delete(lease);
      }
      for (const lease of leases) void this.#leaseEnded(lease);
    } catch (error) {
      if (this.#closed) return;
      emit("failed", () => ({ during: "watch", error }));
      this.#reopening.later(this.#compareAgain);
    }
  }

  /**
   * A lease has ended, or only its canary; in both cases it gets no new keys. Its grants are read
   * before core is told, many in one request, so that core has its answer when it asks.
   */
  async #leaseEnded(id: string): Promise<void> {
    this.#leases.retire(id);
    const grants = this.#trackedClaims.on(id);
    const parts: Promise<void>[] = [];
    for (let i = 0; i < grants.length; i += MOST_GETS)
      parts.push(this.#askAfter(grants.slice(i, i + MOST_GETS)));
    await Promise.all(parts);
  }

  async #askAfter(grants: readonly HeldGrant[]): Promise<void> {
    try {
      const answers = await this.#read(grants.map(({ self }) => get(self.key)));
      for (const [i, grant] of grants.entries()) grant.gone ||= answers[i]!.length === 0;
    } catch (error) {
      // Core asks on its own, and repeats until it has an answer.
      if (!this.#closed) emit("failed", () => ({ during: "watch", error }));
    }
    // Grants that still exist must move to another lease, which has a canary.
    if (this.#unreported.size === 0) setImmediate(() => this.#notifySome());
    for (const grant of grants) this.#unreported.add(grant);
  }

  /**
   * For each resource, core goes through everything that it holds. So thousands of grants are
   * reported in small parts, and other work runs between them.
   */
  #notifySome(): void {
    const startedAt = systemClock.now();
    for (const grant of this.#unreported) {
      this.#unreported.delete(grant);
      // A renewal may have told the holder already.
      if (this.#trackedClaims.grant(grant.ref) === grant) this.#notify(grant.ref.resource);
      if (systemClock.now() - startedAt > PART_MS) break;
    }
    if (this.#unreported.size > 0) setImmediate(() => this.#notifySome());
  }

  async #read(success: readonly Op[]) {
    const deadline = systemClock.now() + ASK_MS;
    const txn = { compare: [], success, failure: [] };
    const options = { deadline, repeatable: true, urgent: true };
    const answer = await this.#client.txn(txn, options);
    return success.map((_, i) => found(answer, i));
  }

  #notify(resource: string): void {
    for (const listener of this.#listeners) listener(resource);
  }
}
