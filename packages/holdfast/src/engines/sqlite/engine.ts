import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../clock.js";
import type {
  Busy,
  Call,
  Claim,
  Engine,
  EngineTraits,
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
import { emit } from "../../events.js";
import { globToRegExp } from "../../resource.js";
import { Bells } from "./bell.js";
import type { Ledger } from "./ledger.js";
import type { SqliteTerms } from "./options.js";
import { type Blocker, type GrantRow, holderOf } from "./rows.js";
import { Store } from "./store.js";

// The head looks for a holder that died; the others only show that they are still there.
const HEAD_HEARTBEAT_MS = 250;
const HEARTBEAT_MS = 1_000;
// Without a bell the heartbeat is all that brings news.
const DEAF_HEARTBEAT_MS = 50;
const HEARING_TIMEOUT_MS = 5_000;
const DAY_MS = 86_400_000;

export const SQLITE_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 20, maxMs: 365 * DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: 1024,
};

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** All processes and threads of one host, through one database file. */
export class SqliteEngine implements Engine {
  readonly name = "sqlite";
  readonly traits = SQLITE_TRAITS;
  readonly #store: Store;
  readonly #bells: Bells;
  readonly #clock: Clock;
  readonly #peer = randomBytes(8).toString("hex");
  readonly #grantListeners = new Set<GrantListener>();
  readonly #changeListeners = new Set<(resource: string) => void>();
  #bell: number | null = null;
  #listening = false;
  // Core's clock less ours, learned from the calls it makes. A push has no call of its own, and its
  // validity must be told in core's instants all the same.
  #coreOffsetMs = 0;
  // Others find our bell in the file; a holder that never waits needs it there as much as a waiter.
  #bellShown = false;

  constructor(terms: SqliteTerms, clock: Clock = systemClock) {
    this.#clock = clock;
    this.#bells = new Bells(terms.path);
    this.#store = new Store(terms, this.#peer, clock, (ledger, since) => this.#tell(ledger, since));
  }

  /** Opens the file now rather than at the first call, so that what is wrong with it is told early. */
  open(): Promise<void> {
    return this.#store.open();
  }

  tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    return this.#claim(call, (ledger) => {
      const blockers = ledger.blockers(claim.resource);
      const known = repeat(ledger, claim, blockers, call);
      if (known !== null) return known;
      const outcome = ledger.tryGrant(claim, blockers, ledger.head(claim.resource));
      if (!Array.isArray(outcome)) return granted(outcome, call.startedAt);
      return { kind: "busy", holders: holders(outcome) };
    });
  }

  renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone)[]> {
    return this.#store.transact(call, (ledger) =>
      grants.map((grant) => {
        if (!ledger.renew(grant, grant.ttlMs)) return whyGone(ledger, grant);
        return { kind: "renewed", since: call.startedAt, ttlMs: grant.ttlMs };
      }),
    );
  }

  release(grants: readonly ReleaseRef[], call: Call): Promise<readonly (Released | Gone)[]> {
    return this.#store.transact(call, (ledger) =>
      grants.map((grant) => {
        if (grant.tombstoneMs > 0) ledger.bury(grant.grantId, grant.tombstoneMs);
        const ended = ledger.end(grant) || ledger.leaveLine(grant);
        return ended ? { kind: "released" } : whyGone(ledger, grant);
      }),
    );
  }

  check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    return this.#store.transact(call, (ledger) => {
      const row = findToken(ledger, resource, token);
      return row !== null && row.mode === mode && row.revoked === 0;
    });
  }

  revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    return this.#store.transact(call, (ledger) => {
      const row = findToken(ledger, resource, token);
      if (row === null) return "gone";
      ledger.revoke(row, force);
      // Our own bell may not hang yet, and a holder in this process needs none.
      if (row.peer === this.#peer) queueMicrotask(() => this.#changed(resource));
      return "revoked";
    });
  }

  inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#store.transact(call, (ledger) => view(ledger, resource));
  }

  list({ match, cursor, max }: ListFilter, call: Call): Promise<ListPage> {
    const glob = globToRegExp(match);
    return this.#store.transact(call, (ledger) => {
      const names = ledger.resourcesAfter(cursor ?? "", max);
      const views = names.filter((name) => glob.test(name)).map((name) => view(ledger, name));
      return {
        views: views.filter((v) => v.holders.length + v.waiters.length > 0 || v.closedMs > 0),
        cursor: names.length < max ? null : names.at(-1)!,
      };
    });
  }

  async close(): Promise<void> {
    this.#bells.close();
    this.#grantListeners.clear();
    this.#changeListeners.clear();
    await this.#store.close();
  }

  readonly queue: QueueFacet = {
    enqueue: (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      // The bell must hang before anyone can be asked to ring it.
      if (!this.#listening) this.#listen();
      this.#learn(call);
      return this.#claim(call, (ledger) => {
        const blockers = ledger.blockers(claim.resource);
        const known = repeat(ledger, claim, blockers, call);
        if (known !== null) return known;
        const head = ledger.head(claim.resource);
        if (head === null || ledger.waiter(claim.grantId) === null) {
          const outcome = ledger.tryGrant(claim, blockers, head);
          if (!Array.isArray(outcome)) return granted(outcome, call.startedAt);
          ledger.beat(this.#bell);
          ledger.enqueue(claim);
          // A shared claim may stand behind nobody but the gone, and fit.
          ledger.promote(claim.resource, outcome, undefined, claim.grantId);
        }
        const standing = this.#standing(ledger, claim, call);
        // A waiter that was just let in and at once ended by somebody else stands nowhere.
        return standing.kind === "unknown" ? { kind: "gone", why: "unknown" } : standing;
      });
    },

    heartbeat: (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown)[]> => {
      this.#learn(call);
      return this.#store.transact(call, (ledger) => {
        ledger.beat(this.#bell);
        const rooms = new Map<string, Room>();
        return waiters.map((waiter) => {
          const { resource, grantId } = waiter;
          const room = rooms.get(resource) ?? enter(ledger, resource);
          rooms.set(resource, room);
          const position = room.line.get(grantId);
          if (position === undefined) return this.#standing(ledger, waiter, call);
          return this.#queued(position, room.blockers);
        });
      });
    },

    withdraw: (waiter: GrantRef, call: Call): Promise<Withdrawn | Granted> =>
      this.#store.transact(call, (ledger) => {
        const row = ledger.alive(waiter);
        if (row !== null && row.revoked === 0) {
          return granted(ledger.arm(row, row.ttl_ms), call.startedAt);
        }
        // Out of the line only: a withdrawal that is delivered twice must not end a grant in use.
        ledger.leaveLine(waiter);
        return { kind: "withdrawn" };
      }),

    onGrant: (listener: GrantListener) => {
      this.#grantListeners.add(listener);
      return () => this.#grantListeners.delete(listener);
    },
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      if (!this.#listening) this.#listen();
      this.#changeListeners.add(listener);
      return () => this.#changeListeners.delete(listener);
    },
  };

  #learn(call: Call): void {
    this.#coreOffsetMs = call.startedAt - this.#clock.now();
  }

  async #claim<T>(call: Call, work: (ledger: Ledger) => T): Promise<T> {
    const show = !this.#bellShown;
    const answer = await this.#store.transact(call, (ledger) => {
      if (show) ledger.beat(this.#bell);
      return work(ledger);
    });
    if (show) this.#bellShown = this.#listening;
    return answer;
  }

  #standing(ledger: Ledger, ref: GrantRef, call: Call): Granted | Queued | Unknown {
    const row = ledger.alive(ref);
    if (row !== null && row.revoked === 0) {
      return granted(ledger.arm(row, row.ttl_ms), call.startedAt);
    }
    const waiter = ledger.waiter(ref.grantId);
    if (waiter === null) return { kind: "unknown" };
    return this.#queued(ledger.position(waiter), ledger.blockers(waiter.resource));
  }

  #queued(position: number, blockers: readonly Blocker[]): Queued {
    const usualMs =
      this.#bell === null ? DEAF_HEARTBEAT_MS : position === 0 ? HEAD_HEARTBEAT_MS : HEARTBEAT_MS;
    const nextEndMs = Math.min(...blockers.map((b) => b.leftMs + b.row.lock_delay_ms));
    const nextHeartbeatMs = Math.min(usualMs, Math.max(1, nextEndMs));
    return { kind: "queued", position, nextHeartbeatMs, holders: holders(blockers) };
  }

  #listen(): void {
    this.#listening = true;
    this.#bell = this.#bells.listen(this.#peer, () => void this.#hear());
  }

  /** Somebody rang: claims what was granted to our waiters, and passes on what was revoked. */
  async #hear(): Promise<void> {
    const since = this.#clock.now();
    const call = { startedAt: since, timeoutMs: HEARING_TIMEOUT_MS };
    try {
      const { claimed, revoked } = await this.#store.transact(call, (ledger) => ({
        claimed: ledger.claimOwn(),
        revoked: ledger.revokedOwn(),
      }));
      for (const row of claimed) this.#push(row, since);
      for (const resource of revoked) this.#changed(resource);
    } catch (error) {
      emit("failed", () => ({ during: "bell", error }));
    }
  }

  /** After a commit: wakes the other processes, and our own waiters directly. */
  #tell(ledger: Ledger, since: number): void {
    for (const bell of ledger.rings) this.#bells.ring(bell);
    for (const row of ledger.granted) this.#push(row, since);
  }

  #push(row: GrantRow, since: number): void {
    const answer = granted(row, since + this.#coreOffsetMs);
    for (const listener of this.#grantListeners) listener(refOf(row), answer);
  }

  #changed(resource: string): void {
    for (const listener of this.#changeListeners) listener(resource);
  }
}

/** One resource as a heartbeat finds it, once for all of its waiters. */
interface Room {
  readonly blockers: readonly Blocker[];
  readonly line: ReadonlyMap<string, number>;
}

function enter(ledger: Ledger, resource: string): Room {
  const blockers = ledger.blockers(resource);
  ledger.promote(resource, blockers);
  const line = new Map(ledger.line(resource).map((row, position) => [row.grant_id, position]));
  return { blockers, line };
}

/** The same grantId again: the same token, with a fresh ttl. A buried one is refused for good. */
function repeat(
  ledger: Ledger,
  claim: Claim,
  blockers: readonly Blocker[],
  call: Call,
): Granted | Gone | null {
  if (ledger.isBuried(claim.grantId)) return { kind: "gone", why: "unknown" };
  const own = blockers.find(({ row, leftMs }) => row.grant_id === claim.grantId && leftMs > 0);
  if (own === undefined) return null;
  if (own.row.revoked === 1) return { kind: "gone", why: "revoked" };
  return granted(ledger.arm(own.row, own.row.ttl_ms), call.startedAt);
}

function refOf({ resource, grant_id: grantId }: GrantRow): GrantRef {
  return { resource, grantId };
}

function granted({ token, tokens, ttl_ms: ttlMs }: GrantRow, since: number): Granted {
  return { kind: "granted", token: BigInt(token), tokens, since, ttlMs };
}

function holders(blockers: readonly Blocker[]) {
  return blockers.filter(({ leftMs }) => leftMs > 0).map(holderOf);
}

function whyGone(ledger: Ledger, { resource, grantId }: GrantRef): Gone {
  const blockers = ledger.blockers(resource);
  const own = blockers.find(({ row }) => row.grant_id === grantId);
  if (own === undefined) return { kind: "gone", why: blockers.length > 0 ? "replaced" : "expired" };
  return { kind: "gone", why: own.row.revoked === 1 && own.leftMs > 0 ? "revoked" : "expired" };
}

function findToken(ledger: Ledger, resource: string, token: bigint): GrantRow | null {
  const wanted = Number(token);
  const found = ledger
    .blockers(resource)
    .find(
      ({ row, leftMs }) => leftMs > 0 && wanted >= row.token && wanted < row.token + row.tokens,
    );
  return found?.row ?? null;
}

function view(ledger: Ledger, resource: string): ResourceView {
  const blockers = ledger.blockers(resource);
  const over = blockers.filter(({ leftMs }) => leftMs <= 0);
  return {
    resource,
    holders: holders(blockers),
    waiters: ledger.line(resource).map(({ mode, label }, position) => ({ mode, label, position })),
    closedMs: Math.max(0, ...over.map(({ row, leftMs }) => leftMs + row.lock_delay_ms)),
  };
}
