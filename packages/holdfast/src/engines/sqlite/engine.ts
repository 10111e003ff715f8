import { randomBytes } from "node:crypto";
import { compileGlob } from "../../core/acquiring/resource.js";
import { type Clock, systemClock } from "../../core/runtime/clock.js";
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
import { openDatabase } from "./file/database.js";
import { type GrantListener, Notifications } from "./notifications/notifications.js";
import type { SqliteTerms } from "./options.js";
import {
  answerRepeat,
  claimState,
  findToken,
  granted,
  holders,
  ResourceHeartbeat,
  renew,
  takeGrant,
  view,
  whyGone,
} from "./records/answers.js";
import type { LockTables } from "./records/lock-tables.js";
import { tokenInUse } from "./records/rows.js";
import { Store } from "./records/store.js";

const DAY_MS = 86_400_000;
// A page of a listing holds the file's write lock for at most this long, plus one more name.
const PAGE_MS = 5;

export const SQLITE_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 20, maxMs: 365 * DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: 1024,
  leaves: true,
};

/** Locks between all processes and threads of one host, through one database file. */
export class SqliteEngine implements Engine {
  readonly name = "sqlite";
  readonly traits = SQLITE_TRAITS;
  readonly #store: Store;
  readonly #notifications: Notifications;
  readonly #clock: Clock;
  readonly #self = randomBytes(8).toString("hex");
  // Other processes read the number of our wake file in the database. A holder that never waits
  // needs it there too: a revocation wakes it.
  #wakeFilePublished = false;

  constructor(terms: SqliteTerms, clock: Clock = systemClock, open = openDatabase) {
    this.#clock = clock;
    const notify = (tables: LockTables, since: number) => this.#notifications.notify(tables, since);
    this.#store = new Store(terms, this.#self, clock, notify, open);
    this.#notifications = new Notifications(terms.path, this.#self, clock, (call, work) =>
      this.#store.transact(call, work),
    );
  }

  /**
   * Opens the file now instead of at the first call, so that the user learns early what is wrong
   * with it.
   */
  open(): Promise<void> {
    return this.#store.open();
  }

  tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    return this.#claim(call, (tables) => {
      const blockers = tables.blockers(claim.resource);
      const known = answerRepeat(tables, claim, blockers, call);
      if (known !== null) return known;
      const outcome = tables.tryGrant(claim, blockers, tables.queue.head(claim.resource));
      if (outcome !== null) return granted(outcome, call.startedAt);
      return { kind: "busy", holders: holders(blockers.loaded) };
    });
  }

  renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone)[]> {
    return this.#store.transact(call, (tables) =>
      grants.map((grant) => renew(tables, grant, call)),
    );
  }

  release(grants: readonly ReleaseRef[], call: Call): Promise<readonly (Released | Gone)[]> {
    return this.#store.transact(call, (tables) =>
      grants.map((grant) => {
        if (grant.tombstoneMs > 0) tables.tombstones.add(grant.grantId, grant.tombstoneMs);
        const ended = tables.end(grant) || tables.leaveQueue(grant);
        return ended ? { kind: "released" } : whyGone(tables, grant);
      }),
    );
  }

  check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    return this.#store.transact(call, (tables) => {
      const row = findToken(tables, resource, token);
      return row !== null && row.mode === mode && row.revoked === 0;
    });
  }

  revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    return this.#store.transact(call, (tables) => {
      const row = findToken(tables, resource, token);
      if (row === null || tokenInUse(row) !== token) return "gone";
      tables.revoke(row, force);
      // A holder in this process is told directly: its wake file may not be watched yet.
      if (row.peer === this.#self) queueMicrotask(() => this.#notifications.changed(resource));
      return "revoked";
    });
  }

  inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#store.transact(call, (tables) => view(tables, resource));
  }

  list({ match, cursor, max }: ListFilter, call: Call): Promise<ListPage> {
    const glob = compileGlob(match);
    return this.#store.transact(call, (tables) => {
      const until = this.#clock.now() + PAGE_MS;
      const names = tables.resourcesAfter(cursor ?? "", max);
      const views: ResourceView[] = [];
      for (const name of names) {
        const found = glob.test(name) ? view(tables, name) : null;
        if (found !== null && isInUse(found)) views.push(found);
        // While this transaction runs, no other process can acquire or renew.
        if (this.#clock.now() >= until) return { views, cursor: name };
      }
      return { views, cursor: names.length < max ? null : names.at(-1)! };
    });
  }

  async close(): Promise<void> {
    this.#notifications.close();
    await this.#store.close();
  }

  readonly queue: QueueFacet = {
    enqueue: (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      this.#notifications.listen();
      this.#notifications.learnClockOffset(call);
      return this.#claim(call, (tables) => {
        const blockers = tables.blockers(claim.resource);
        const known = answerRepeat(tables, claim, blockers, call);
        if (known !== null) return known;
        if (tables.queue.find(claim.grantId) === null) {
          const outcome = tables.tryGrant(claim, blockers, tables.queue.head(claim.resource));
          if (outcome !== null) return granted(outcome, call.startedAt);
          tables.queue.join(claim);
        }
        tables.peers.recordHeartbeat(this.#notifications.wakeFile);
        // All waiters ahead of a shared claim may be gone, so that it fits now. A repeated call may
        // find that its turn has come.
        tables.promote(claim.resource, blockers, undefined, claim.grantId);
        const state = claimState(
          tables,
          claim,
          call,
          blockers,
          this.#notifications.wakeFile !== null,
        );
        // Only for the type: inside one transaction nobody else can remove this claim.
        return state.kind === "unknown" ? { kind: "gone", why: "unknown" } : state;
      });
    },

    heartbeat: (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown)[]> => {
      this.#notifications.learnClockOffset(call);
      const answers = this.#store.transact(call, (tables) => {
        tables.peers.recordHeartbeat(this.#notifications.wakeFile);
        const hasWakeFile = this.#notifications.wakeFile !== null;
        const resources = new Map<string, ResourceHeartbeat>();
        return waiters.map((waiter) => {
          const { resource } = waiter;
          const heartbeat = resources.get(resource) ?? new ResourceHeartbeat(tables, resource);
          resources.set(resource, heartbeat);
          return heartbeat.claimState(waiter, call, hasWakeFile);
        });
      });
      return answers.catch((error: unknown) => {
        if (!this.#store.isFileReplaced) throw error;
        // The file of this queue is no longer at the path. After "unknown" the waiter enqueues
        // again, and that call fails with the reason. A failed heartbeat would only be repeated
        // until the waiter's time is over.
        return waiters.map(() => ({ kind: "unknown" as const }));
      });
    },

    withdraw: (waiter: GrantRef, call: Call): Promise<Withdrawn | Granted> =>
      this.#store.transact(call, (tables) => {
        const grant = takeGrant(tables, waiter, call);
        if (grant !== null) return grant;
        // Only removes a waiter: a withdrawal that is delivered twice must not end a grant in use.
        tables.leaveQueue(waiter);
        return { kind: "withdrawn" };
      }),

    onGrant: (listener: GrantListener) => {
      this.#notifications.grantListeners.add(listener);
      return () => this.#notifications.grantListeners.delete(listener);
    },
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#notifications.listen();
      this.#notifications.changeListeners.add(listener);
      return () => this.#notifications.changeListeners.delete(listener);
    },
  };

  async #claim<T>(call: Call, work: (tables: LockTables) => T): Promise<T> {
    const publish = !this.#wakeFilePublished;
    const answer = await this.#store.transact(call, (tables) => {
      if (publish) tables.peers.recordHeartbeat(this.#notifications.wakeFile);
      return work(tables);
    });
    if (publish) this.#wakeFilePublished = this.#notifications.listening;
    return answer;
  }
}

function isInUse({ holders, waiters, closedMs }: ResourceView): boolean {
  return holders.length + waiters.length > 0 || closedMs > 0;
}
