import { systemClock } from "../../../core/runtime/clock.js";
import { emit } from "../../../events.js";
import type { EtcdClient, Stream } from "../client/client.js";
import { Reopening } from "../client/reopening.js";
import { base64, found, get, type Op, range, text } from "../client/requests.js";
import type { WatchMessage } from "../client/shapes.js";
import type { Holding, Holdings } from "../holding/holdings.js";
import type { Leases } from "../leases/leases.js";
import { type Keys, leaseOfCanary } from "../queue/keys.js";
import { creation } from "./watches.js";

/** No longer, as core asks by itself then. */
const ASK_MS = 2_000;
const MOST_GETS = 100;
const PART_MS = 10;

type ChangeListener = (resource: string) => void;

/**
 * What the holders of this process are told while their next renewal is far: that a grant was revoked,
 * and that a lease has ended under them.
 *
 * All grants of one ttl hang on one etcd lease, and its end takes all their keys in one moment. That
 * need not be by our doing: anybody with the rights can revoke it, and a leader that hung for longer
 * than the lease lives does so when it is back, because it never heard of the keepalives that its
 * successor took (etcd-io/etcd#12528, #15247). So one key more hangs on each lease, its canary, in the
 * key range where this engine's notes are. The stream that hears of notes hears of its deletion too.
 */
export class Notifications {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #engineId: string;
  readonly #leases: Leases;
  readonly #holdings: Holdings;
  readonly #listeners = new Set<ChangeListener>();
  /** Those on a lease that has ended, of which core does not know yet. */
  readonly #untold = new Set<Holding>();
  readonly #reopening = new Reopening();
  readonly #reopen = () => this.#open();
  readonly #compareAgain = () => void this.#compare();
  #stream: Stream | null = null;
  /** The first revision that was not heard of; 0 for what comes from now on. Null before the first grant. */
  #next: bigint | null = null;
  /** Whether something may have been missed since the stream last stood. */
  #wasAway = false;
  #closed = false;

  constructor(
    client: EtcdClient,
    keys: Keys,
    engineId: string,
    leases: Leases,
    holdings: Holdings,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#engineId = engineId;
    this.#leases = leases;
    this.#holdings = holdings;
    leases.onEnd = (id) => void this.#leaseEnded(id);
  }

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** From the first grant or waiter on, which was made at this revision: its canary is older. */
  listen(revision: bigint): void {
    if (this.#next !== null || this.#closed) return;
    this.#next = revision + 1n;
    this.#open();
  }

  /** A grant hangs on a lease that is not watched over, or not kept alive: core renews it, which moves it. */
  tellSoon(resource: string): void {
    // Not before core has heard of the grant itself.
    setImmediate(() => this.#tell(resource));
  }

  /** Calls go to another member from now on. */
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
      creation({ key: base64(start), range_end: base64(end), ...from }),
      (message) => isCurrent() && this.#hear(message),
      () => isCurrent() && this.#lost(),
    );
    this.#stream = stream;
  }

  #hear({ created, canceled, compact_revision, events = [] }: WatchMessage): void {
    for (const { type, kv } of events) {
      const key = text(kv.key);
      this.#next = BigInt(kv.mod_revision) + 1n;
      const lease = leaseOfCanary(key);
      if (lease !== null && type === "DELETE") void this.#leaseEnded(lease);
      if (lease === null && type !== "DELETE") this.#tell(text(kv.value ?? ""));
    }
    if (canceled) {
      // What was compacted away cannot be heard any more; it is read instead, as after any absence.
      if (compact_revision !== undefined) this.#next = 0n;
      this.#lost();
      // Refused for a token that is no good any more: a call notices that, and asks for another one.
      void this.#compare();
    } else if (created) {
      this.#reopening.stands();
      if (this.#wasAway) void this.#compare();
      this.#wasAway = false;
    }
  }

  #lost(): void {
    this.#wasAway = true;
    this.#stream?.close();
    this.#reopening.later(this.#reopen);
  }

  /** etcd repeats what a stream missed in rounds, and not what was compacted: what is there tells it at once. */
  async #compare(): Promise<void> {
    // A lease that comes while this is asked has its canary later than what is read.
    const leases = new Set([...this.#holdings.leases(), ...this.#leases.ids()]);
    try {
      const [there = []] = await this.#read([range(this.#keys.notes(this.#engineId))]);
      for (const { key, value } of there) {
        const lease = leaseOfCanary(key);
        if (lease === null) this.#tell(value);
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
   * A lease is no more, or only its canary: nothing new is hung on it either way. Whoever hangs on it is
   * asked after before core is told, many in one request. So core has its answer when it asks.
   */
  async #leaseEnded(id: string): Promise<void> {
    this.#leases.retire(id);
    const grants = this.#holdings.on(id);
    const parts: Promise<void>[] = [];
    for (let i = 0; i < grants.length; i += MOST_GETS)
      parts.push(this.#askAfter(grants.slice(i, i + MOST_GETS)));
    await Promise.all(parts);
  }

  async #askAfter(grants: readonly Holding[]): Promise<void> {
    try {
      const answers = await this.#read(grants.map(({ self }) => get(self.key)));
      for (const [i, grant] of grants.entries()) grant.gone ||= answers[i]!.length === 0;
    } catch (error) {
      // Core asks in its own way, and goes on until it has an answer.
      if (!this.#closed) emit("failed", () => ({ during: "watch", error }));
    }
    // Those that are still there are to be moved to another lease, which has a canary.
    if (this.#untold.size === 0) setImmediate(() => this.#tellSome());
    for (const grant of grants) this.#untold.add(grant);
  }

  /**
   * For each resource that it is told of, core goes through all that it holds. So it is told of
   * thousands in small parts, and everybody else has a turn between them.
   */
  #tellSome(): void {
    const startedAt = systemClock.now();
    for (const grant of this.#untold) {
      this.#untold.delete(grant);
      // Its renewal may have told its holder already.
      if (this.#holdings.grant(grant.ref) === grant) this.#tell(grant.ref.resource);
      if (systemClock.now() - startedAt > PART_MS) break;
    }
    if (this.#untold.size > 0) setImmediate(() => this.#tellSome());
  }

  async #read(success: readonly Op[]) {
    const deadline = systemClock.now() + ASK_MS;
    const txn = { compare: [], success, failure: [] };
    const options = { deadline, repeatable: true, urgent: true };
    const answer = await this.#client.txn(txn, options);
    return success.map((_, i) => found(answer, i));
  }

  #tell(resource: string): void {
    for (const listener of this.#listeners) listener(resource);
  }
}
