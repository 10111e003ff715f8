import { randomBytes } from "node:crypto";
import { sleep, systemClock } from "../../clock.js";
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
import { EngineError, UsageError } from "../../errors.js";
import { emit } from "../../events.js";
import { Claims, type Verdict, type Waits } from "./claims.js";
import { EtcdClient } from "./client.js";
import { GivenUp } from "./given-up.js";
import { Heartbeats } from "./heartbeats.js";
import { Holdings, type Kept, type Waiting } from "./holdings.js";
import { Keys, markerOf } from "./keys.js";
import { Leases } from "./leases.js";
import { holderView, type Member, tokenOf } from "./line.js";
import type { EtcdTerms } from "./options.js";
import { Releases } from "./releases.js";
import { Renewals } from "./renewals.js";
import { created, del, put, type RawTxn } from "./requests.js";
import { owns, Revocations } from "./revocations.js";
import { Views } from "./views.js";
import { Watches } from "./watches.js";

const DAY_MS = 86_400_000;
const LEAVING_MS = 500;
const LOOK_MS = 5_000;
const OPEN_MS = 3_000;
const EXPIRE_MS = 1_000;
/** Core repeats a release at once, and once more; only then is it left to us. */
const LEFTOVER_MS = 500;
const OF_THE_TIME = 0.9;
/** Heartbeats in the life of a waiter's lease. */
const BEATS = 3;

export const ETCD_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 2_000, maxMs: 365 * DAY_MS, stepMs: 1_000 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: 1024,
};

/** Which key of etcd proves a grant, for a transaction of your own. */
export interface EtcdGuard {
  readonly key: string;
  readonly createRevision: string;
  /** As an entry of `compare` in a transaction of the JSON gateway. */
  readonly compare: {
    readonly key: string;
    readonly target: "CREATE";
    readonly result: "EQUAL";
    readonly create_revision: string;
  };
}

type GrantListener = (waiter: GrantRef, granted: Granted) => void;
type Holds = Extract<Verdict, { kind: "holds" }>;

/** When a call came in, on both clocks. */
interface Entered {
  readonly at: number;
  readonly deadline: number;
  readonly startedAt: number;
}

/** An etcd or a cluster of them. Every answer is decided by a transaction. */
export class EtcdEngine implements Engine {
  readonly name = "etcd";
  readonly traits = ETCD_TRAITS;
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leases: Leases;
  readonly #claims: Claims;
  readonly #watches: Watches;
  readonly #holdings = new Holdings(
    (kept) => this.#expire(kept),
    (kept) => this.#leases.retire(leaseOf(kept)),
  );
  readonly #renewals: Renewals;
  readonly #heartbeats: Heartbeats;
  readonly #releases: Releases;
  readonly #revocations: Revocations;
  readonly #views: Views;
  readonly #engineId = randomBytes(8).toString("hex");
  readonly #givenUp = new GivenUp();
  readonly #grantListeners = new Set<GrantListener>();
  readonly #changeListeners = new Set<(resource: string) => void>();
  #listening = false;
  #closed = false;

  constructor(terms: EtcdTerms) {
    const client = new EtcdClient(terms);
    const keys = new Keys(terms.prefix);
    const leases = new Leases(client);
    const claims = new Claims(client, keys, leases, this.#engineId);
    this.#client = client;
    this.#keys = keys;
    this.#leases = leases;
    this.#claims = claims;
    this.#watches = new Watches(client);
    this.#renewals = new Renewals(client, keys, claims, this.#holdings);
    this.#heartbeats = new Heartbeats(client, keys, claims, this.#holdings);
    this.#releases = new Releases(client, keys, leases);
    this.#revocations = new Revocations(client, keys, claims, leases);
    this.#views = new Views(client, keys, claims, leases);
  }

  /** A server that is not there is told at connect; one that goes away later is waited for. */
  async open(): Promise<void> {
    await this.list(
      { match: "*", cursor: null, max: 1 },
      { startedAt: systemClock.now(), timeoutMs: OPEN_MS },
    );
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const entered = this.#enter(call);
    const verdict = await this.#givenUp.claim(claim.grantId, (isOver) =>
      this.#claims.tryAcquire(claim, entered.deadline, isOver),
    );
    if (verdict.kind === "holds") return this.#grant(claim, verdict, entered);
    if (verdict.kind === "gone") return verdict;
    return { kind: "busy", holders: viewsOf(verdict.holders) };
  }

  async renew(
    grants: readonly RenewRef[],
    call: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    const entered = this.#enter(call);
    const outcomes = await this.#renewals.renew(grants, entered.deadline);
    return outcomes.map((outcome, i) => {
      if (outcome.kind !== "confirmed") return outcome;
      const { ttlMs } = grants[i]!;
      const { since, moved, marker } = outcome;
      const holding = this.#holdings.grant(grants[i]!);
      if (holding !== null) {
        const until = since + ttlMs;
        this.#holdings.keep(Object.assign(holding, { until, marker, tries: 0 }));
        if (moved !== null) holding.self = moved;
      }
      return { kind: "renewed", since: inCore(since, entered), ttlMs };
    });
  }

  async release(
    grants: readonly ReleaseRef[],
    call: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    const { deadline } = this.#enter(call);
    return Promise.all(
      grants.map(async (ref): Promise<Released | Gone | Failed> => {
        const kept = this.#forget(ref);
        if (this.#givenUp.release(ref.grantId, ref.tombstoneMs))
          return { kind: "gone", why: "unknown" };
        const answer = await this.#releases.release(ref, deadline).catch(failed);
        // Its lease may live on for others: what could not be given back now is taken away later.
        if (answer.kind === "failed" && !this.#closed) {
          const until = systemClock.now() + LEFTOVER_MS;
          const lease = kept === null ? null : leaseOf(kept);
          this.#holdings.keep({ kind: "leftover", ref, lease, until, tries: 0 });
        }
        return answer;
      }),
    );
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    const { deadline } = this.#enter(call);
    const line = await this.#claims.line(resource, deadline);
    const holder = line.holders.find((member) => owns(member, token));
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
    this.#grantListeners.clear();
    this.#changeListeners.clear();
    this.#watches.close();
    await this.#leaveLines();
    this.#holdings.close();
    this.#client.close();
  }

  /**
   * What your own etcd transaction must compare so that it commits only while this lease's grant is
   * there: lock and data are then decided together.
   */
  guard({ resource, token }: { readonly resource: string; readonly token: bigint }): EtcdGuard {
    const holding = this.#holdings.find(resource, token >> 10n);
    if (holding === null) throw new UsageError(`this engine holds no such lease of "${resource}"`);
    const { key, created: revision } = holding.self;
    const createRevision = String(revision);
    const { key: encoded } = created(key, revision);
    const equal = { target: "CREATE", result: "EQUAL" } as const;
    const compare = { key: encoded, ...equal, create_revision: createRevision };
    return { key, createRevision, compare };
  }

  readonly queue: QueueFacet = {
    enqueue: async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      const entered = this.#enter(call);
      const verdict = await this.#givenUp.claim(claim.grantId, (isOver) =>
        this.#claims.enqueue(claim, entered.deadline, isOver),
      );
      if (verdict.kind === "waits") return this.#queue(claim, verdict, entered);
      if (verdict.kind === "holds") return this.#grant(claim, verdict, entered);
      return verdict.kind === "gone" ? verdict : { kind: "gone", why: "unknown" };
    },

    heartbeat: async (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
      const entered = this.#enter(call);
      const known = waiters.map((ref) => this.#holdings.waiter(ref));
      // Asked after, whether etcd answers or not: its place is not ours to give up.
      for (const waiting of known) if (waiting !== null) this.#holdings.extend(waiting, entered.at);
      const verdicts = await this.#heartbeats.beat(waiters, entered.deadline);
      return Promise.all(
        waiters.map(async (ref, i): Promise<Queued | Granted | Unknown | Failed> => {
          const verdict = verdicts[i]!;
          if (verdict.kind === "failed") return verdict;
          // Released meanwhile: what was read is over.
          if (known[i] != null && this.#holdings.isOver(ref)) return { kind: "unknown" };
          if (verdict.kind === "waits") return this.#queue(ref, verdict, entered).catch(failed);
          const granted =
            verdict.kind === "holds"
              ? await this.#grant(ref, verdict, entered).catch(failed)
              : verdict;
          if (granted.kind === "granted" || granted.kind === "failed") return granted;
          this.#forget(ref);
          return { kind: "unknown" };
        }),
      );
    },

    withdraw: async (ref: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const entered = this.#enter(call);
      const [verdict] = await this.#heartbeats.beat([ref], entered.deadline);
      if (verdict?.kind === "failed") throw verdict.error;
      if (verdict?.kind === "holds") {
        const granted = await this.#grant(ref, verdict, entered);
        if (granted.kind === "granted") return granted;
      }
      this.#forget(ref);
      // Should its turn come in this very moment, nobody has been told of it yet.
      if (verdict?.kind === "waits") await this.#claims.remove(verdict.self, entered.deadline);
      return { kind: "withdrawn" };
    },

    onGrant: (listener: GrantListener) => {
      this.#grantListeners.add(listener);
      return () => this.#grantListeners.delete(listener);
    },
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#changeListeners.add(listener);
      return () => this.#changeListeners.delete(listener);
    },
  };

  /** The grant counts from the last good keepalive of the lease that its key hangs on. */
  async #grant(ref: GrantRef, { self, entry }: Holds, entered: Entered): Promise<Granted | Gone> {
    const { lockDelayMs, tokens } = entry;
    const lease = this.#leases.find(self.lease);
    let [since, ttlMs] = [entered.at, entry.ttlMs];
    let marker: string | null = null;
    if (lease === null) {
      // Another connection's lease, or one of ours from before.
      const { leastMs } = await this.#leases.left(self.lease, entered.deadline);
      if (leastMs === 0) return { kind: "gone", why: "expired" };
      ttlMs = Math.min(ttlMs, leastMs);
    } else {
      since = lease.since;
      ttlMs = Math.min(ttlMs, lease.ttlMs);
      if (lockDelayMs > 0) {
        const mark = this.#leases.peek(entry.ttlMs + lockDelayMs);
        since = Math.min(since, mark?.since ?? since);
        marker = mark?.id ?? null;
      }
    }
    const known = this.#forget(ref);
    const until = Math.max(since + ttlMs, known?.kind === "grant" ? known.until : 0);
    this.#holdings.keep({
      kind: "grant",
      ref: refOf(ref),
      self,
      until,
      tries: 0,
      lockDelayMs,
      marker,
    });
    this.#listen(self.created);
    const token = tokenOf(self);
    return { kind: "granted", token, tokens, since: inCore(since, entered), ttlMs };
  }

  async #queue(ref: GrantRef, waits: Waits, entered: Entered): Promise<Queued> {
    const { self, holders, before } = waits;
    const ttlMs = (JSON.parse(self.value) as { ttlMs: number }).ttlMs;
    const lease = await this.#claims.waiterLease(ttlMs, 1, entered.deadline);
    const known = this.#holdings.waiter(ref);
    const position = waits.position ?? known?.position ?? 0;
    const offsetMs = Math.min(entered.startedAt - entered.at, known?.offsetMs ?? Infinity);
    const until = entered.at + lease.ttlMs;
    const waiting: Waiting = known ?? {
      ...{ kind: "waiter", ref: refOf(ref), self, position, offsetMs, until, tries: 0 },
      ...{ graceMs: lease.ttlMs, interests: [] },
    };
    this.#holdings.keep(Object.assign(waiting, { self, position, offsetMs, until, tries: 0 }));
    if (before !== null) this.#follow(waiting, before);
    this.#listen(self.created);
    const nextHeartbeatMs = lease.ttlMs / BEATS;
    return { kind: "queued", position, nextHeartbeatMs, holders: viewsOf(holders) };
  }

  #follow(waiting: Waiting, keys: readonly string[]): void {
    const same =
      keys.length === waiting.interests.length &&
      waiting.interests.every(({ key }) => keys.includes(key));
    if (same) return;
    for (const interest of waiting.interests) this.#watches.drop(interest);
    const onEnd = () => void this.#turn(waiting);
    const room = this.#keys.room(waiting.ref.resource);
    waiting.interests = keys.map((key) => ({ room, key, onEnd }));
    for (const interest of waiting.interests) this.#watches.add(interest);
  }

  /** Somebody before this waiter has left. Whatever goes wrong here, its heartbeat sets right. */
  async #turn(waiting: Waiting): Promise<void> {
    const { ref, self, offsetMs } = waiting;
    const isStill = () => !this.#closed && this.#holdings.waiter(ref) === waiting;
    if (!isStill()) return;
    for (const interest of waiting.interests) this.#watches.drop(interest);
    waiting.interests = [];
    const at = systemClock.now();
    const entered = { at, deadline: at + LOOK_MS, startedAt: at + offsetMs };
    try {
      const verdict = await this.#claims.look(ref.resource, self, entered.deadline);
      if (!isStill()) return;
      if (verdict.kind === "waits") {
        this.#follow(waiting, verdict.before ?? []);
        waiting.position = verdict.position ?? waiting.position;
      } else if (verdict.kind === "holds") {
        const granted = await this.#grant(ref, verdict, entered);
        if (granted.kind !== "granted") return;
        for (const listener of this.#grantListeners) listener(ref, granted);
      }
    } catch (error) {
      emit("failed", () => ({ during: "push", error, resource: ref.resource }));
    }
  }

  /** Word of revocations, from the first grant on. */
  #listen(revision: bigint): void {
    if (this.#listening) return;
    this.#listening = true;
    this.#watches.follow(this.#keys.notes(this.#engineId), revision + 1n, (resource) => {
      for (const listener of this.#changeListeners) listener(resource);
    });
  }

  /** Nobody renewed it or asked after it any more, while its lease lives on for others. */
  async #expire(kept: Kept): Promise<void> {
    const deadline = systemClock.now() + EXPIRE_MS;
    if (kept.kind === "leftover") {
      await this.#releases.release(kept.ref, deadline);
      return;
    }
    const { key, created: revision } = kept.self;
    const success = [del(key)];
    if (kept.kind === "waiter") {
      this.#drop(kept);
    } else if (kept.lockDelayMs > 0) {
      const mark = await this.#leases.dying(kept.lockDelayMs, deadline);
      success.push(put(markerOf(key), "", mark.id));
    }
    const txn = { compare: [created(key, revision)], success, failure: [] };
    await this.#client.kv<RawTxn>("txn", txn, { deadline, repeatable: true });
  }

  #forget(ref: GrantRef): Kept | null {
    const kept = this.#holdings.forget(ref);
    if (kept?.kind === "waiter") this.#drop(kept);
    return kept;
  }

  #drop(waiting: Waiting): void {
    for (const interest of waiting.interests) this.#watches.drop(interest);
    waiting.interests = [];
  }

  /** Whoever comes after our waiters should not have to find out that nobody is there. */
  async #leaveLines(): Promise<void> {
    const deadline = systemClock.now() + LEAVING_MS;
    const left = Promise.all(
      this.#holdings.waiters.map(({ self }) => this.#claims.remove(self, deadline)),
    );
    const late = sleep(systemClock, LEAVING_MS, undefined, false);
    await Promise.race([left, late]).catch((error: unknown) =>
      emit("failed", () => ({ during: "close", error })),
    );
    left.catch(() => {});
  }

  #enter({ startedAt, timeoutMs }: Call): Entered {
    if (this.#closed) {
      throw new EngineError("the etcd engine was closed", { effect: "none", retryable: false });
    }
    const at = systemClock.now();
    // A little before core's own, so that what went wrong is told, and not silence.
    return { at, deadline: at + timeoutMs * OF_THE_TIME, startedAt };
  }
}

/** Core's clock need not be ours; no honest answer counts from later than the call. */
function inCore(since: number, { at, startedAt }: Entered): number {
  return Math.min(startedAt, since - at + startedAt);
}

function leaseOf(kept: Kept): string | null {
  return kept.kind === "leftover" ? kept.lease : kept.self.lease;
}

function refOf({ resource, grantId }: GrantRef): GrantRef {
  return { resource, grantId };
}

/** How long each has left is not known in the same breath: its whole life at most. */
function viewsOf(holders: readonly Member[]) {
  return holders.map((member) => holderView(member, member.entry?.ttlMs ?? 0));
}

function failed(error: unknown): Failed {
  if (!(error instanceof EngineError)) throw error;
  return { kind: "failed", effect: error.effect, error };
}
