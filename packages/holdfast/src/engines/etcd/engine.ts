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
  GrantRef,
  ListFilter,
  ListPage,
  Queued,
  QueueFacet,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  Unknown,
  WatchFacet,
  Withdrawn,
} from "../../engine.js";
import { EngineError } from "../../errors.js";
import { EtcdClient } from "./client/client.js";
import { type CallTimes, onCoreClock, timesOf } from "./client/deadlines.js";
import { failedRequest } from "./client/failure.js";
import { ClaimStates } from "./holding/claim-states.js";
import { Expiry } from "./holding/expiry.js";
import { type EtcdGuard, guardOf } from "./holding/guard.js";
import { Holdings, leaseOf } from "./holding/holdings.js";
import { PushedGrants } from "./holding/pushed-grants.js";
import { Releases } from "./holding/releases.js";
import { owns, Revocations } from "./holding/revocations.js";
import { Views } from "./inspect/views.js";
import { Changes } from "./leases/changes.js";
import { LeasePool } from "./leases/lease-pool.js";
import { Leases } from "./leases/leases.js";
import { Renewals } from "./leases/renewals.js";
import { Notifications } from "./notifications/notifications.js";
import { Watches } from "./notifications/watches.js";
import type { EtcdTerms } from "./options.js";
import { CancelledClaims } from "./queue/cancelled-claims.js";
import type { ClaimAnswer } from "./queue/claim-answer.js";
import { Claims } from "./queue/claims.js";
import { Heartbeats } from "./queue/heartbeats.js";
import { Keys } from "./queue/keys.js";
import { LongQueues } from "./queue/long-queues.js";
import { viewsOf } from "./queue/queue.js";
import { QueueReader } from "./queue/queue-reader.js";
import { Turns } from "./queue/turns.js";
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
  readonly #client: EtcdClient;
  readonly #holdings: Holdings;
  readonly #claims: Claims;
  readonly #queueReader: QueueReader;
  readonly #waiterKeys: WaiterKeys;
  readonly #releases: Releases;
  readonly #notifications: Notifications;
  readonly #pushedGrants: PushedGrants;
  readonly #claimStates: ClaimStates;
  readonly #expiry: Expiry;
  readonly #renewals: Renewals;
  readonly #heartbeats: Heartbeats;
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
    const holdings = new Holdings({
      end: (kept) => this.#expiry.end(kept),
      leaveToLease: (kept) => leases.retire(leaseOf(kept)),
    });
    const queueReader = new QueueReader(client, keys);
    const waiterKeys = new WaiterKeys(client);
    const turns = new Turns(client, keys, leasePool, queueReader, waiterKeys);
    const watches = new Watches(client);
    const notifications = new Notifications(client, keys, engineId, leases, holdings);
    const pushedGrants = new PushedGrants(
      { keys, leases, turns, holdings, watches },
      (ref, holds, times) => this.#claimStates.grant(ref, holds, times),
    );
    const tools = { client, keys, engineId, leases, leasePool, holdings, queueReader, waiterKeys };
    const longQueues = new LongQueues({ ...tools, turns });
    const releases = new Releases(client, keys, leases);
    const claimStates = new ClaimStates({ ...tools, notifications, pushedGrants });
    const changes = new Changes(client, leasePool, leases, holdings);
    client.onMove = () => {
      watches.move();
      notifications.move();
    };
    this.#client = client;
    this.#holdings = holdings;
    this.#claims = new Claims({ ...tools, turns, longQueues });
    this.#queueReader = queueReader;
    this.#waiterKeys = waiterKeys;
    this.#releases = releases;
    this.#notifications = notifications;
    this.#pushedGrants = pushedGrants;
    this.#claimStates = claimStates;
    this.#expiry = new Expiry({ ...tools, releases, pushedGrants, claimStates });
    this.#renewals = new Renewals(client, keys, leasePool, changes, holdings);
    this.#heartbeats = new Heartbeats({ ...tools, turns });
    this.#revocations = new Revocations(client, keys, queueReader, leases);
    this.#views = new Views(client, keys, queueReader, leases);
  }

  /**
   * Fails if no server answers at connect. A server that goes away later is waited for. Inspects one name,
   * because etcd counts all keys for a list.
   */
  async open(): Promise<void> {
    const call = { startedAt: systemClock.now(), timeoutMs: OPEN_MS, order: 0 };
    await this.inspect("holdfast", call);
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const times = this.#enter(call);
    const verdict = await this.#cancelledClaims.claim(claim.grantId, (isOver) =>
      this.#claims.tryAcquire(claim, times.deadline, isOver),
    );
    if (verdict.kind === "holds") return this.#claimStates.grant(claim, verdict, times);
    if (verdict.kind === "gone") return verdict;
    return { kind: "busy", holders: viewsOf(verdict.holders) };
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
      const holding = this.#holdings.grant(grants[i]!);
      if (left) this.#claimStates.forget(grants[i]!);
      else if (holding !== null) {
        const until = since + ttlMs;
        this.#holdings.keep(Object.assign(holding, { until, marker, tries: 0 }));
        if (moved !== null) Object.assign(holding, { self: moved, told: true });
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
        const kept = this.#claimStates.forget(ref);
        const isUnsent = this.#cancelledClaims.release(ref.grantId, ref.tombstoneMs);
        if (isUnsent && kept === null) return { kind: "gone", why: "unknown" };
        const answer = await this.#releases.release(ref, deadline).catch(failedRequest);
        if (answer.kind === "failed") this.#claimStates.releaseLater(ref, kept);
        return answer;
      }),
    );
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    const { deadline } = this.#enter(call);
    const queue = await this.#queueReader.queue(resource, deadline);
    const holder = queue.holders.find((member) => owns(member, token));
    if (holder === undefined) return false;
    return (holder.entry?.mode ?? "exclusive") === mode && !holder.entry?.revoked;
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
   * What your own etcd transaction must compare to commit only while this lease's grant exists: lock and
   * data are then decided together.
   */
  guard(lease: { readonly resource: string; readonly token: bigint }): EtcdGuard {
    return guardOf(this.#holdings, lease);
  }

  readonly queue: QueueFacet = {
    enqueue: async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      const times = this.#enter(call);
      const verdict = await this.#cancelledClaims.claim(claim.grantId, (isOver) =>
        this.#claims.enqueue(claim, times.deadline, isOver),
      );
      return this.#stands(claim, verdict, times);
    },

    heartbeat: async (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
      const times = this.#enter(call);
      const known = new Set(waiters.filter((ref) => this.#asked(ref, times.at)));
      return this.#heartbeats.beat(waiters, times.deadline, async (ref, verdict) => {
        if (verdict.kind === "failed") return verdict;
        // The claim was released during the read, so the reading is out of date.
        if (known.has(ref) && this.#holdings.isOver(ref)) return { kind: "unknown" };
        const answer = await this.#stands(ref, verdict, times).catch(failedRequest);
        if (answer.kind !== "gone") return answer;
        this.#claimStates.forget(ref);
        return { kind: "unknown" };
      });
    },

    withdraw: async (ref: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const times = this.#enter(call);
      const look = async (_: GrantRef, verdict: ClaimAnswer | Failed) => verdict;
      const [verdict] = await this.#heartbeats.beat([ref], times.deadline, look);
      if (verdict?.kind === "failed") throw verdict.error;
      // A push may have granted the claim after it was read as waiting. This answer also tells core.
      const isPushed = verdict?.kind === "waits" && this.#holdings.grant(ref) !== null;
      if (verdict?.kind === "holds" || isPushed) {
        const granted = await this.#stands(ref, verdict, times);
        if (granted.kind === "granted") return granted;
      }
      this.#claimStates.forget(ref);
      // If its turn comes at this moment, nobody has been told of the grant yet.
      if (verdict?.kind === "waits") await this.#waiterKeys.remove(verdict.self, times.deadline);
      return { kind: "withdrawn" };
    },

    onGrant: (listener) => this.#pushedGrants.onGrant(listener),
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => this.#notifications.onChange(listener),
  };

  /** Whether it waits here. A heartbeat of core keeps its place, whether etcd answers or not. */
  #asked(ref: GrantRef, at: number): boolean {
    const waiting = this.#holdings.waiter(ref);
    if (waiting !== null) this.#holdings.extend(waiting, at);
    return waiting !== null;
  }

  async #stands(
    ref: GrantRef,
    verdict: ClaimAnswer,
    times: CallTimes,
  ): Promise<Granted | Queued | Gone> {
    if (verdict.kind === "waits") return this.#claimStates.queue(ref, verdict, times);
    if (verdict.kind === "holds") return this.#claimStates.grant(ref, verdict, times);
    return verdict.kind === "gone" ? verdict : { kind: "gone", why: "unknown" };
  }

  #enter(call: Call): CallTimes {
    if (!this.#closed) return timesOf(call);
    throw new EngineError("the etcd engine was closed", { effect: "none", retryable: false });
  }
}
