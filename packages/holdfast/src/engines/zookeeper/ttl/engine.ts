import { systemClock } from "../../../core/runtime/clock.js";
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
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  WatchFacet,
} from "../../../engine.js";
import { settleEach } from "../../../engine-kit/settle-each.js";
import { ResourceNodes } from "../claims/resource-nodes.js";
import { closedEngine, deadlineOf } from "../failure.js";
import { Folder } from "../inspect/folder.js";
import { LAYOUTS } from "../layout.js";
import { TOKEN_RANGE } from "../node-record.js";
import type { ZookeeperTerms } from "../options.js";
import { hashOf, pathOf } from "../paths.js";
import { prove } from "../session/prove.js";
import { Sessions } from "../session/sessions.js";
import { decideClaim } from "./decide-claim.js";
import { decideRenewal } from "./decide-renewal.js";
import { signatureOf, tokenInUse, withGrant, withoutGrant, withTombstone } from "./lock-record.js";
import { Notifications } from "./notifications.js";
import { RecordStore } from "./record-store.js";
import { type Decision, RecordUpdates } from "./record-updates.js";
import { findGrant, goneFrom, holderViews, livingGrant } from "./record-view.js";

const DAY_MS = 86_400_000;
/**
 * A refused claim looks again within a second. A claim that does not for some seconds was given up.
 */
const WATCH_MS = 5_000;

export const ZOOKEEPER_TTL_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 100, maxMs: 365 * DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: TOKEN_RANGE,
  leaves: true,
};

/**
 * Locks as records in persistent nodes, with a ttl that clients judge: ZooKeeper as a database that
 * survives its servers. A grant is over when an observer has seen it unchanged for its ttl.
 */
export class ZookeeperTtlEngine implements Engine {
  readonly name = "zookeeper";
  readonly traits = ZOOKEEPER_TTL_TRAITS;
  readonly #terms: ZookeeperTerms;
  readonly #sessions: Sessions;
  readonly #updates: RecordUpdates;
  readonly #notifications: Notifications;
  readonly #folder: Folder;
  readonly #listeners = new Set<(resource: string) => void>();
  #closed = false;

  constructor(terms: ZookeeperTerms) {
    this.#terms = terms;
    this.#sessions = new Sessions(terms, () => {});
    this.#folder = new Folder(terms.location, this.#sessions);
    const resourceNodes = new ResourceNodes(LAYOUTS.holdfast, terms.acl);
    this.#updates = new RecordUpdates(new RecordStore(this.#sessions, resourceNodes, terms.acl));
    this.#notifications = new Notifications(this.#sessions, (resource) => {
      for (const listener of this.#listeners) listener(resource);
    });
  }

  /** Resolves when the servers answer. */
  open(withinMs: number): Promise<void> {
    return this.#sessions.ready(withinMs);
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const until = this.#enter(call);
    const { resource, ttlMs } = claim;
    const hash = hashOf(claim.grantId);
    const path = pathOf(this.#terms.location, resource);
    let signature = "";
    let untimed = false;
    const ask = () =>
      this.#updates.update(
        path,
        until,
        (view) => {
          const [answer, next] = decideClaim(claim, hash, view, call.startedAt);
          signature = signatureOf(next ?? view.record);
          untimed = view.grants.some((grant) => grant.untimed);
          return [answer, next];
        },
        { repeatable: true },
      );
    let answer = await ask();
    if (answer.kind === "busy" && untimed) {
      await this.#updates.timeLeftGrants(path, until);
      answer = await ask();
    }
    const forMs = answer.kind === "granted" ? ttlMs : WATCH_MS;
    if (answer.kind !== "gone") this.#notifications.watch(path, resource, forMs, signature);
    return answer;
  }

  async renew(
    grants: readonly RenewRef[],
    call: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    const until = this.#enter(call);
    return settleEach(grants, async (ref) => {
      const { resource, ttlMs } = ref;
      const path = pathOf(this.#terms.location, resource);
      let signature = "";
      const answer = await this.#updates.update(path, until, (view) => {
        signature = signatureOf(view.record);
        return decideRenewal(ref, view, call);
      });
      if (answer.kind === "renewed") this.#notifications.watch(path, resource, ttlMs, signature);
      return answer;
    });
  }

  async release(grants: readonly ReleaseRef[], call: Call) {
    const until = this.#enter(call);
    return settleEach(grants, ({ resource, grantId, tombstoneMs }) => {
      const hash = hashOf(grantId);
      const path = pathOf(this.#terms.location, resource);
      return this.#updates.update(path, until, (view): Decision<Released | Gone> => {
        const { record } = view;
        const buried = tombstoneMs > 0 ? withTombstone(record, hash, tombstoneMs) : record;
        const own = livingGrant(view, hash);
        // A late holder must not end the lock-delay of its expired grant, nor a grant that it left
        // behind.
        if (own === null || own.grant.left)
          return [goneFrom(view), tombstoneMs > 0 ? buried : null];
        return [{ kind: "released" }, withoutGrant(buried, hash)];
      });
    });
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    const until = this.#enter(call);
    const path = pathOf(this.#terms.location, resource);
    // Somebody writes data after this answer, so the word of a replaced leader is not enough.
    const proof = this.#sessions.on(
      () => this.#sessions.any(),
      (session) => prove(session, path, until),
    );
    const [view] = await Promise.all([this.#updates.read(path, until), proof]);
    const found = view === null ? null : findGrant(view, token);
    return found !== null && found.grant.mode === mode && !found.grant.revoked;
  }

  async revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    const path = pathOf(this.#terms.location, resource);
    return this.#updates.update(path, this.#enter(call), (view) => {
      const found = findGrant(view, token);
      if (found === null || tokenInUse(found.grant) !== token) return ["gone", null];
      const { hash, grant } = found;
      const next = force
        ? withoutGrant(view.record, hash)
        : withGrant(view.record, hash, { ...grant, revoked: true });
      return ["revoked", next];
    });
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#inspect(resource, this.#enter(call));
  }

  async list(filter: ListFilter, call: Call): Promise<ListPage> {
    const until = this.#enter(call);
    return this.#folder.list(filter, until, (resource) => this.#inspect(resource, until));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#notifications.close();
    this.#folder.forget();
    await this.#sessions.close();
  }

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  /** For tests: observes a resource, as if it had been observed so much earlier. */
  async age(resource: string, ms: number, call: Call): Promise<void> {
    await this.#inspect(resource, this.#enter(call));
    this.#updates.observedGrants.age(pathOf(this.#terms.location, resource), ms);
  }

  async #inspect(resource: string, until: number): Promise<ResourceView> {
    const view = await this.#updates.read(pathOf(this.#terms.location, resource), until);
    const grants = view?.grants ?? [];
    const over = grants.filter(({ leftMs }) => leftMs <= 0);
    return {
      resource,
      holders: holderViews(grants),
      waiters: [],
      closedMs: Math.max(0, ...over.map(({ blocksMs }) => blocksMs)),
    };
  }

  #enter(call: Call): number {
    if (this.#closed) throw closedEngine();
    return deadlineOf(systemClock.now(), call);
  }
}
