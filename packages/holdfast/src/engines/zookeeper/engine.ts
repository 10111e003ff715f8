import { systemClock } from "../../core/runtime/clock.js";
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
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  Unknown,
  WatchFacet,
  Withdrawn,
} from "../../engine.js";
import { settleEach } from "../../engine-kit/settle-each.js";
import { ClaimService, type Timing } from "./claims/claim-service.js";
import { Claims } from "./claims/claims.js";
import { LeftGrants } from "./claims/left-grants.js";
import { OwnClaims } from "./claims/own-claims.js";
import { PushedGrants } from "./claims/pushed-grants.js";
import type { Queue } from "./claims/queue.js";
import { Renewals } from "./claims/renewals.js";
import { ResourceNodes } from "./claims/resource-nodes.js";
import { closedEngine, deadlineOf } from "./failure.js";
import { Folder } from "./inspect/folder.js";
import { Views } from "./inspect/views.js";
import { LAYOUTS } from "./layout.js";
import { TOKEN_RANGE } from "./node-record.js";
import type { ZookeeperTerms } from "./options.js";
import { pathOf } from "./paths.js";
import { Sessions } from "./session/sessions.js";
import type { Session } from "./wire/session.js";

const DAY_MS = 86_400_000;

export const ZOOKEEPER_TRAITS: EngineTraits = {
  expiry: "session",
  ttl: { minMs: 1_000, maxMs: DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: TOKEN_RANGE,
  leaves: true,
};

const FOREIGN_TRAITS: EngineTraits = {
  ...ZOOKEEPER_TRAITS,
  // Other libraries would take a grant that was left behind for a live holder, and wait for ever.
  ...{ modes: ["exclusive"], limits: false, lockDelay: false, leaves: false },
};

/** Locks on ZooKeeper: nodes that end with their session, in one queue for each resource. */
export class ZookeeperEngine implements Engine {
  readonly name = "zookeeper";
  readonly traits: EngineTraits;
  readonly #terms: ZookeeperTerms;
  readonly #sessions: Sessions;
  readonly #claims: Claims;
  readonly #ownClaims: OwnClaims;
  readonly #views: Views;
  readonly #folder: Folder;
  readonly #claimService: ClaimService;
  readonly #pushedGrants: PushedGrants;
  readonly #renewals: Renewals;
  readonly #changeListeners = new Set<(resource: string) => void>();
  #closed = false;

  constructor(terms: ZookeeperTerms) {
    this.#terms = terms;
    this.traits = terms.layout === "holdfast" ? ZOOKEEPER_TRAITS : FOREIGN_TRAITS;
    const layout = LAYOUTS[terms.layout];
    const resourceNodes = new ResourceNodes(layout, terms.acl);
    this.#sessions = new Sessions(terms, (session) => this.#onSessionEnd(session));
    this.#claims = new Claims(
      resourceNodes,
      layout,
      (claimState, granted) => void this.#pushedGrants.look(claimState, granted),
      (claimState) => this.#changed(claimState.claim.resource),
    );
    this.#pushedGrants = new PushedGrants(this.#claims);
    this.#ownClaims = new OwnClaims(this.#claims, this.#sessions);
    this.#views = new Views(this.#claims, terms.location);
    this.#folder = new Folder(terms.location, this.#sessions);
    const [sessions, claims] = [this.#sessions, this.#claims];
    const tools = { sessions, claims, ownClaims: this.#ownClaims, views: this.#views };
    const pushedGrants = this.#pushedGrants;
    this.#claimService = new ClaimService(terms, this.traits, { ...tools, pushedGrants });
    const leftGrants = new LeftGrants(claims);
    this.#renewals = new Renewals(terms.location, {
      ...tools,
      claimService: this.#claimService,
      leftGrants,
    });
  }

  /** Resolves when the servers answer. */
  open(withinMs: number): Promise<void> {
    return this.#sessions.ready(withinMs);
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const answer = await this.#claimService.claim(claim, this.#enter(call), false);
    if (answer.kind !== "queued") return answer;
    const { holders, nextHeartbeatMs } = answer;
    return { kind: "busy", holders, retryAfterMs: nextHeartbeatMs };
  }

  async renew(grants: readonly RenewRef[], call: Call) {
    return this.#renewals.renew(grants, this.#enter(call));
  }

  async release(grants: readonly ReleaseRef[], call: Call) {
    const { until } = this.#enter(call);
    return settleEach(grants, ({ resource, grantId, tombstoneMs }): Promise<Released | Gone> => {
      const resourcePath = pathOf(this.#terms.location, resource);
      return this.#ownClaims.release({ resource, grantId }, resourcePath, tombstoneMs, until);
    });
  }

  async check(sequence: Sequence, call: Call): Promise<boolean> {
    return this.#ask(call, (session, until) => this.#views.check(session, sequence, until));
  }

  async revoke(ref: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    return this.#ask(call, (session, until) => this.#views.revoke(session, ref, until));
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#ask(call, (session, until) => this.#views.inspect(session, resource, until));
  }

  async list(filter: ListFilter, call: Call): Promise<ListPage> {
    const { until } = this.#enter(call);
    return this.#folder.list(filter, until, (resource) =>
      this.#on((session) => this.#views.inspect(session, resource, until)),
    );
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#claimService.close();
    this.#pushedGrants.close();
    this.#changeListeners.clear();
    this.#ownClaims.close();
    this.#folder.forget();
    // Closing a session ends all its nodes at the servers at once.
    await this.#sessions.close();
  }

  readonly queue: QueueFacet = {
    enqueue: async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      return this.#claimService.claim(claim, this.#enter(call), true);
    },

    heartbeat: async (waiters: readonly GrantRef[], call: Call) => {
      const timing = this.#enter(call);
      const queues = new Map<string, Promise<Queue>>();
      return settleEach(waiters, async (ref): Promise<Queued | Granted | Unknown> => {
        const claimState = this.#ownClaims.find(ref);
        if (claimState === null) return { kind: "unknown" };
        const place = await this.#claimService.look(claimState, timing, queues);
        const answer = await this.#claimService.answer(claimState, place, timing);
        return answer.kind === "gone" ? { kind: "unknown" } : answer;
      });
    },

    withdraw: async (ref: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const timing = this.#enter(call);
      const claimState = this.#ownClaims.find(ref);
      if (claimState === null) return { kind: "withdrawn" };
      const place = await this.#claimService.look(claimState, timing);
      // The claim may have been granted by a push after this was read, and may be in use.
      if (place.is === "queued" && claimState.state !== "granted") {
        await this.#ownClaims.release(ref, claimState.resourcePath, 0, timing.until);
        return { kind: "withdrawn" };
      }
      const answer = await this.#claimService.answer(claimState, place, timing);
      return answer.kind === "granted" ? answer : { kind: "withdrawn" };
    },

    onGrant: (listener) => this.#pushedGrants.onGrant(listener),
  };

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#changeListeners.add(listener);
      return () => this.#changeListeners.delete(listener);
    },
  };

  #onSessionEnd(session: Session): void {
    const ended = this.#ownClaims.endOf(session);
    for (const resource of new Set(ended.map(({ claim }) => claim.resource))) {
      this.#changed(resource);
    }
  }

  #changed(resource: string): void {
    for (const listener of this.#changeListeners) listener(resource);
  }

  #ask<T>(call: Call, work: (session: Session, until: number) => Promise<T>): Promise<T> {
    const { until } = this.#enter(call);
    return this.#on((session) => work(session, until));
  }

  #on<T>(work: (session: Session) => Promise<T>): Promise<T> {
    return this.#sessions.on(() => this.#sessions.any(), work);
  }

  #enter(call: Call): Timing {
    if (this.#closed) throw closedEngine();
    const at = systemClock.now();
    return { call, at, until: deadlineOf(at, call) };
  }
}
