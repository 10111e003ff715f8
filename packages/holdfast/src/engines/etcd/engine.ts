import { randomBytes } from "node:crypto";
import { systemClock } from "../../core/runtime/clock.js";
import type {
  Busy,
  Call,
  Claim,
  Engine,
  EngineTraits,
  Failed,
  Gone,
  Granted,
  ListFilter,
  ListPage,
  QueueFacet,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  WatchFacet,
} from "../../engine.js";
import { EngineError } from "../../errors.js";
import { EtcdClient } from "./client/client.js";
import { type CallTimes, onCoreClock, timesOf } from "./client/deadlines.js";
import { failedRequest } from "./client/failure.js";
import { ClaimStates } from "./holding/claim-states.js";
import { Expiry } from "./holding/expiry.js";
import { type EtcdGuard, guardOf } from "./holding/guard.js";
import { PushedGrants } from "./holding/pushed-grants.js";
import { Releases } from "./holding/releases.js";
import { owns, Revocations } from "./holding/revocations.js";
import { leaseOf, TrackedClaims } from "./holding/tracked-claims.js";
import { Views } from "./inspect/views.js";
import { LeasePool } from "./leases/lease-pool.js";
import { Leases } from "./leases/leases.js";
import { RenewalWrites } from "./leases/renewal-writes.js";
import { Renewals } from "./leases/renewals.js";
import { Notifications } from "./notifications/notifications.js";
import { Watches } from "./notifications/watches.js";
import type { EtcdTerms } from "./options.js";
import { CancelledClaims } from "./queue/cancelled-claims.js";
import { Claims } from "./queue/claims.js";
import { EtcdQueue } from "./queue/etcd-queue.js";
import { Heartbeats } from "./queue/heartbeats.js";
import { Keys } from "./queue/keys.js";
import { LongQueues } from "./queue/long-queues.js";
import { viewsOf } from "./queue/queue.js";
import { QueueReader } from "./queue/queue-reader.js";
import { QueueTurns } from "./queue/queue-turns.js";
import { WaiterKeys } from "./queue/waiter-keys.js";

const DAY_MS = 86_400_000;
const OPEN_MS = 3_000;

export const ETCD_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 2_000, maxMs: 365 * DAY_MS, stepMs: 1_000 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: 1024,
  leaves: true,
};

/** Locks on an etcd server or cluster. A transaction decides every answer. */
export class EtcdEngine implements Engine {
  readonly name = "etcd";
  readonly traits = ETCD_TRAITS;
  readonly queue: QueueFacet;
  readonly #client: EtcdClient;
  readonly #trackedClaims: TrackedClaims;
  readonly #claims: Claims;
  readonly #queueReader: QueueReader;
  readonly #releases: Releases;
  readonly #notifications: Notifications;
  readonly #claimStates: ClaimStates;
  readonly #expiry: Expiry;
  readonly #renewals: Renewals;
  readonly #revocations: Revocations;
  readonly #views: Views;
  readonly #cancelledClaims = new CancelledClaims();
  #closed = false;

  constructor(terms: EtcdTerms) {
    const client = new EtcdClient(terms);
    const keys = new Keys(terms.prefix);
    const engineId = randomBytes(8).toString("hex");
    const leases = new Leases(client, (id) => keys.canary(engineId, id));
    const leasePool = new LeasePool(leases);
    const trackedClaims = new TrackedClaims({
      end: (claim) => this.#expiry.end(claim),
      leaveToLease: (claim) => leases.retire(leaseOf(claim)),
    });
    const queueReader = new QueueReader(client, keys);
    const waiterKeys = new WaiterKeys(client);
    const turns = new QueueTurns(client, keys, leasePool, queueReader, waiterKeys);
    const watches = new Watches(client);
    const notifications = new Notifications(client, keys, engineId, leases, trackedClaims);
    const pushedGrants = new PushedGrants(
      { keys, leases, turns, trackedClaims, watches },
      (ref, holds, times) => this.#claimStates.grant(ref, holds, times),
    );
    const tools = {
      client,
      keys,
      engineId,
      leases,
      leasePool,
      trackedClaims,
      queueReader,
      waiterKeys,
    };
    const longQueues = new LongQueues({ ...tools, turns });
    const claims = new Claims({ ...tools, turns, longQueues });
    const releases = new Releases(client, keys, leases);
    const claimStates = new ClaimStates({ ...tools, notifications, pushedGrants });
    const heartbeats = new Heartbeats({ ...tools, turns });
    const writes = new RenewalWrites(client, leasePool, leases, trackedClaims);
    client.onMove = () => {
      watches.move();
      notifications.move();
    };
    this.#client = client;
    this.#trackedClaims = trackedClaims;
    this.#claims = claims;
    this.#queueReader = queueReader;
    this.#releases = releases;
    this.#notifications = notifications;
    this.#claimStates = claimStates;
    this.#expiry = new Expiry({ ...tools, releases, pushedGrants, claimStates });
    this.#renewals = new Renewals(client, keys, leasePool, writes, trackedClaims);
    this.#revocations = new Revocations(client, keys, queueReader, leases);
    this.#views = new Views(client, keys, queueReader, leases);
    const cancelledClaims = this.#cancelledClaims;
    this.queue = new EtcdQueue(
      { ...tools, claims, cancelledClaims, heartbeats, claimStates, pushedGrants },
      (call) => this.#enter(call),
    );
  }

  /**
   * Fails if no server answers at connect. A server that goes away later is waited for. Inspects
   * one name, because etcd counts all keys for a list.
   */
  async open(): Promise<void> {
    const call = { startedAt: systemClock.now(), timeoutMs: OPEN_MS, order: 0 };
    await this.inspect("holdfast", call);
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const times = this.#enter(call);
    const answer = await this.#cancelledClaims.claim(claim.grantId, (isOver) =>
      this.#claims.tryAcquire(claim, times.deadline, isOver),
    );
    if (answer.kind === "holds") return this.#claimStates.grant(claim, answer, times);
    if (answer.kind === "gone") return answer;
    return { kind: "busy", holders: viewsOf(answer.holders) };
  }

  async renew(
    grants: readonly RenewRef[],
    call: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    const times = this.#enter(call);
    const outcomes = await this.#renewals.renew(grants, call.order, times.deadline);
    return outcomes.map((outcome, i) => {
      if (outcome.kind !== "confirmed") return outcome;
      const { since, ttlMs, moved, marker, left } = outcome;
      const held = this.#trackedClaims.grant(grants[i]!);
      if (left) this.#claimStates.forget(grants[i]!);
      else if (held !== null) {
        const until = since + ttlMs;
        this.#trackedClaims.track(Object.assign(held, { until, marker, tries: 0 }));
        if (moved !== null) Object.assign(held, { self: moved, claimed: true });
      }
      return { kind: "renewed", since: onCoreClock(since, times), ttlMs };
    });
  }

  async release(
    grants: readonly ReleaseRef[],
    call: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    const { deadline } = this.#enter(call);
    return Promise.all(
      grants.map(async (ref): Promise<Released | Gone | Failed> => {
        const tracked = this.#claimStates.forget(ref);
        const isUnsent = this.#cancelledClaims.release(ref.grantId, ref.tombstoneMs);
        if (isUnsent && tracked === null) return { kind: "gone", why: "unknown" };
        const answer = await this.#releases.release(ref, deadline).catch(failedRequest);
        if (answer.kind === "failed") this.#claimStates.releaseLater(ref, tracked);
        return answer;
      }),
    );
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    const { deadline } = this.#enter(call);
    const queue = await this.#queueReader.queue(resource, deadline);
    const holder = queue.holders.find((member) => owns(member, token));
    if (holder === undefined) return false;
    return (holder.record?.mode ?? "exclusive") === mode && !holder.record?.revoked;
  }

  async revoke(ref: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    return this.#revocations.revoke(ref, this.#enter(call).deadline);
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#views.inspect(resource, this.#enter(call).deadline);
  }

  async list(filter: ListFilter, call: Call): Promise<ListPage> {
    return this.#views.list(filter, this.#enter(call).deadline);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#claimStates.close();
    this.#client.close();
  }

  /**
   * What your own etcd transaction must compare to commit only while this lease's grant exists:
   * lock and data are then decided together.
   */
  guard(lease: { readonly resource: string; readonly token: bigint }): EtcdGuard {
    return guardOf(this.#trackedClaims, lease);
  }

  readonly watch: WatchFacet = {
    onChange: (listener) => this.#notifications.onChange(listener),
  };

  #enter(call: Call): CallTimes {
    if (!this.#closed) return timesOf(call);
    throw new EngineError("the etcd engine was closed", { effect: "none", retryable: false });
  }
}
