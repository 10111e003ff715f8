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
import { type GrantListener, News } from "./notifications/notifications.js";
import type { SqliteTerms } from "./options.js";
import {
  arrived,
  findToken,
  granted,
  holders,
  Room,
  renewed,
  repeat,
  standing,
  view,
  whyGone,
} from "./records/answers.js";
import type { Ledger } from "./records/lock-tables.js";
import { tokenInUse } from "./records/rows.js";
import { Store } from "./records/store.js";

const DAY_MS = 86_400_000;
// A page of a listing holds the file's write lock for so long, and one more name, at most.
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

/** All processes and threads of one host, through one database file. */
export class SqliteEngine implements Engine {
  readonly name = "sqlite";
  readonly traits = SQLITE_TRAITS;
  readonly #store: Store;
  readonly #news: News;
  readonly #clock: Clock;
  readonly #self = randomBytes(8).toString("hex");
  // Others find our bell in the file; a holder that never waits needs it there as much as a waiter.
  #bellShown = false;

  constructor(terms: SqliteTerms, clock: Clock = systemClock, open = openDatabase) {
    this.#clock = clock;
    const tell = (ledger: Ledger, since: number) => this.#news.tell(ledger, since);
    this.#store = new Store(terms, this.#self, clock, tell, open);
    this.#news = new News(terms.path, this.#self, clock, (call, work) =>
      this.#store.transact(call, work),
    );
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
      const outcome = ledger.tryGrant(claim, blockers, ledger.line.head(claim.resource));
      if (outcome !== null) return granted(outcome, call.startedAt);
      return { kind: "busy", holders: holders(blockers.seen) };
    });
  }

  renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone)[]> {
    return this.#store.transact(call, (ledger) =>
      grants.map((grant) => renewed(ledger, grant, call)),
    );
  }

  release(grants: readonly ReleaseRef[], call: Call): Promise<readonly (Released | Gone)[]> {
    return this.#store.transact(call, (ledger) =>
      grants.map((grant) => {
        if (grant.tombstoneMs > 0) ledger.tombstones.bury(grant.grantId, grant.tombstoneMs);
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
      if (row === null || tokenInUse(row) !== token) return "gone";
      ledger.revoke(row, force);
      // Our own bell may not hang yet, and a holder in this process needs none.
      if (row.peer === this.#self) queueMicrotask(() => this.#news.changed(resource));
      return "revoked";
    });
  }

  inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#store.transact(call, (ledger) => view(ledger, resource));
  }

  list({ match, cursor, max }: ListFilter, call: Call): Promise<ListPage> {
    const glob = compileGlob(match);
    return this.#store.transact(call, (ledger) => {
      const until = this.#clock.now() + PAGE_MS;
      const names = ledger.resourcesAfter(cursor ?? "", max);
      const views: ResourceView[] = [];
      for (const name of names) {
        const seen = glob.test(name) ? view(ledger, name) : null;
        if (seen !== null && isInUse(seen)) views.push(seen);
        // Nobody else can lock or renew meanwhile.
        if (this.#clock.now() >= until) return { views, cursor: name };
      }
      return { views, cursor: names.length < max ? null : names.at(-1)! };
    });
  }

  async close(): Promise<void> {
    this.#news.close();
    await this.#store.close();
  }

  readonly queue: QueueFacet = {
    enqueue: (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      this.#news.listen();
      this.#news.learn(call);
      return this.#claim(call, (ledger) => {
        const blockers = ledger.blockers(claim.resource);
        const known = repeat(ledger, claim, blockers, call);
        if (known !== null) return known;
        if (ledger.line.find(claim.grantId) === null) {
          const outcome = ledger.tryGrant(claim, blockers, ledger.line.head(claim.resource));
          if (outcome !== null) return granted(outcome, call.startedAt);
          ledger.line.join(claim);
        }
        ledger.peers.beat(this.#news.bell);
        // A shared claim may stand behind nobody but the gone, and fit; one that asks again may find
        // that its time has come.
        ledger.promote(claim.resource, blockers, undefined, claim.grantId);
        const place = standing(ledger, claim, call, blockers, this.#news.bell !== null);
        // A waiter that was just let in and at once ended by somebody else stands nowhere.
        return place.kind === "unknown" ? { kind: "gone", why: "unknown" } : place;
      });
    },

    heartbeat: (
      waiters: readonly GrantRef[],
      call: Call,
    ): Promise<readonly (Queued | Granted | Unknown)[]> => {
      this.#news.learn(call);
      const asked = this.#store.transact(call, (ledger) => {
        ledger.peers.beat(this.#news.bell);
        const hears = this.#news.bell !== null;
        const rooms = new Map<string, Room>();
        return waiters.map((waiter) => {
          const { resource } = waiter;
          const room = rooms.get(resource) ?? new Room(ledger, resource);
          rooms.set(resource, room);
          return room.standing(waiter, call, hears);
        });
      });
      return asked.catch((error: unknown) => {
        if (!this.#store.isCutOff) throw error;
        // There is no line any more at this path. Whoever asks for a new place is told why; a
        // failed heartbeat would only be repeated, for as long as the waiter has patience.
        return waiters.map(() => ({ kind: "unknown" as const }));
      });
    },

    withdraw: (waiter: GrantRef, call: Call): Promise<Withdrawn | Granted> =>
      this.#store.transact(call, (ledger) => {
        const grant = arrived(ledger, waiter, call);
        if (grant !== null) return grant;
        // Out of the line only: a withdrawal that is delivered twice must not end a grant in use.
        ledger.leaveLine(waiter);
        return { kind: "withdrawn" };
      }),

    onGrant: (listener: GrantListener) => {
      this.#news.grantListeners.add(listener);
      return () => this.#news.grantListeners.delete(listener);
    },
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#news.listen();
      this.#news.changeListeners.add(listener);
      return () => this.#news.changeListeners.delete(listener);
    },
  };

  async #claim<T>(call: Call, work: (ledger: Ledger) => T): Promise<T> {
    const show = !this.#bellShown;
    const answer = await this.#store.transact(call, (ledger) => {
      if (show) ledger.peers.beat(this.#news.bell);
      return work(ledger);
    });
    if (show) this.#bellShown = this.#news.listening;
    return answer;
  }
}

function isInUse({ holders, waiters, closedMs }: ResourceView): boolean {
  return holders.length + waiters.length > 0 || closedMs > 0;
}
