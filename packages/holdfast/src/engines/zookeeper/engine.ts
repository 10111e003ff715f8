import { systemClock } from "../../clock.js";
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
import { EngineError, limitMismatch, UnsupportedError } from "../../errors.js";
import { emit } from "../../events.js";
import { Claims, type Place } from "./claims.js";
import { each } from "./each.js";
import { closedEngine } from "./failure.js";
import { LAYOUTS } from "./layout.js";
import { isBuried, isBusy, type Line, otherLimit } from "./line.js";
import type { ZookeeperTerms } from "./options.js";
import { Ours } from "./ours.js";
import { hashOf, pathOf } from "./paths.js";
import { TOKEN_RANGE, tokenOf } from "./record.js";
import { Rooms } from "./room.js";
import { Sessions } from "./sessions.js";
import { Standing } from "./standing.js";
import { Views } from "./views.js";
import { sync } from "./wire/operations.js";
import type { Session } from "./wire/session.js";

const DAY_MS = 86_400_000;
// Watches tell; heartbeats are for what got lost on the way, and the head of the line is told first.
const HEAD_BEAT_MS = 1_000;
const BEAT_MS = 2_000;
const FORGIVEN_BEATS = 3;
/** A pushed grant must be claimed within this. */
const CLAIM_MS = FORGIVEN_BEATS * HEAD_BEAT_MS;
/** After a lost answer core may ask again with the same grantId. */
const REPEAT_MS = 5_000;

export const ZOOKEEPER_TRAITS: EngineTraits = {
  expiry: "session",
  ttl: { minMs: 1_000, maxMs: DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: TOKEN_RANGE,
};

const FOREIGN_TRAITS: EngineTraits = {
  ...ZOOKEEPER_TRAITS,
  ...{ modes: ["exclusive"], limits: false, lockDelay: false },
};

type GrantListener = (waiter: GrantRef, granted: Granted) => void;

/** A call in systemClock's time: core's clock may be another. */
interface Timing {
  readonly call: Call;
  readonly at: number;
  readonly until: number;
}

/** ZooKeeper: nodes that end with their session, in one line for each resource. */
export class ZookeeperEngine implements Engine {
  readonly name = "zookeeper";
  readonly traits: EngineTraits;
  readonly #terms: ZookeeperTerms;
  readonly #sessions: Sessions;
  readonly #claims: Claims;
  readonly #ours: Ours;
  readonly #views: Views;
  readonly #grantListeners = new Set<GrantListener>();
  readonly #changeListeners = new Set<(resource: string) => void>();
  #closed = false;

  constructor(terms: ZookeeperTerms) {
    this.#terms = terms;
    this.traits = terms.layout === "holdfast" ? ZOOKEEPER_TRAITS : FOREIGN_TRAITS;
    const layout = LAYOUTS[terms.layout];
    const rooms = new Rooms(layout, terms.acl);
    this.#sessions = new Sessions(terms, (session) => this.#onSessionEnd(session));
    this.#claims = new Claims(
      rooms,
      layout,
      (standing) => void this.#turn(standing),
      (standing) => this.#changed(standing.claim.resource),
    );
    this.#ours = new Ours(this.#claims, this.#sessions);
    this.#views = new Views(this.#claims, terms.place);
  }

  /** Resolves when the servers answer. */
  open(withinMs: number): Promise<void> {
    return this.#sessions.ready(withinMs);
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const answer = await this.#stand(claim, this.#enter(call), false);
    if (answer.kind !== "queued") return answer;
    const { holders, nextHeartbeatMs } = answer;
    return { kind: "busy", holders, retryAfterMs: nextHeartbeatMs };
  }

  /** One request for each session, however many grants: what befalls a node that is watched is told. */
  async renew(grants: readonly RenewRef[], call: Call) {
    const timing = this.#enter(call);
    const asked = new Map<Session, Promise<unknown>>();
    return each(grants, async (ref): Promise<Renewed | Gone> => {
      const standing = this.#ours.find(ref);
      if (standing === null) return { kind: "gone", why: "expired" };
      const { session } = standing;
      const held = await this.#unlessOver(standing, async () => {
        const proof = asked.get(session) ?? session.ask(sync(standing.room), timing.until);
        asked.set(session, proof);
        await proof;
        if (standing.state !== "granted") return standing.state;
        return this.#claims.verify(standing, timing.until);
      });
      if (held === "waiting" || held === "entering") return { kind: "gone", why: "unknown" };
      if (held === "revoked") return { kind: "gone", why: "revoked" };
      if (held === "held" && this.#ours.find(ref) === standing) {
        return { kind: "renewed", ...this.#validity(standing, timing, ref.ttlMs) };
      }
      if (held === "missing") this.#ours.forget(standing);
      return { kind: "gone", why: "expired" };
    });
  }

  async release(grants: readonly ReleaseRef[], call: Call) {
    const { until } = this.#enter(call);
    return each(grants, ({ resource, grantId, tombstoneMs }): Promise<Released | Gone> => {
      const room = pathOf(this.#terms.place, resource);
      return this.#ours.release({ resource, grantId }, room, tombstoneMs, until);
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
    return this.#ask(call, (session, until) => this.#views.list(session, filter, until));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#grantListeners.clear();
    this.#changeListeners.clear();
    this.#ours.close();
    // With its session everything of ours ends at the servers, and at once.
    await this.#sessions.close();
  }

  readonly queue: QueueFacet = {
    enqueue: async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
      return this.#stand(claim, this.#enter(call), true);
    },

    heartbeat: async (waiters: readonly GrantRef[], call: Call) => {
      const timing = this.#enter(call);
      const lines = new Map<string, Promise<Line>>();
      return each(waiters, async (ref): Promise<Queued | Granted | Unknown> => {
        const standing = this.#ours.find(ref);
        if (standing === null) return { kind: "unknown" };
        const place = await this.#look(standing, timing, lines);
        const answer = await this.#answer(standing, place, timing);
        return answer.kind === "gone" ? { kind: "unknown" } : answer;
      });
    },

    withdraw: async (ref: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
      const timing = this.#enter(call);
      const standing = this.#ours.find(ref);
      if (standing === null) return { kind: "withdrawn" };
      const place = await this.#look(standing, timing);
      if (place.is === "queued") {
        await this.#ours.release(ref, standing.room, 0, timing.until);
        return { kind: "withdrawn" };
      }
      const answer = await this.#answer(standing, place, timing);
      return answer.kind === "granted" ? answer : { kind: "withdrawn" };
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

  /** A claim, new or known. Without patience it leaves again where it would have to wait. */
  async #stand(claim: Claim, timing: Timing, inLine: boolean): Promise<Granted | Queued | Gone> {
    this.#refuseUnsupported(claim);
    const known = this.#ours.find(claim);
    if (known !== null && known.state !== "leaving") {
      const place = await this.#look(known, timing);
      const over = place.is === "missing" && known.session.over;
      if (!over) return this.#answer(known, place, timing);
    }
    const hash = hashOf(claim.grantId);
    const room = pathOf(this.#terms.place, claim.resource);
    if (this.#ours.isBuried(hash)) return { kind: "gone", why: "unknown" };
    const pick = () => this.#sessions.for(claim.ttlMs);
    return this.#sessions.on(pick, async (session) => {
      if (!inLine) {
        const line = await this.#claims.rooms.line(session, room, timing.until);
        const refused = await this.#refused(claim, hash, session, room, line, timing);
        if (refused !== null) return refused;
      }
      const aheadMs = timing.at - timing.call.startedAt;
      const standing = new Standing(claim, hash, room, session, aheadMs);
      standing.doubtful = known !== null;
      this.#ours.add(standing);
      const place = await this.#comeIn(standing, timing);
      const answer = await this.#answer(standing, place, timing);
      if (inLine || answer.kind !== "queued") return answer;
      await this.#ours.release(standing.ref, room, 0, timing.until);
      return answer;
    });
  }

  async #comeIn(standing: Standing, { until }: Timing): Promise<Place> {
    const entering = this.#claims.enter(standing, until);
    standing.entered = entering.catch(() => {});
    try {
      return await entering;
    } catch (error) {
      const unknown = error instanceof EngineError && error.effect === "unknown";
      this.#ours.abandon(standing, unknown ? REPEAT_MS : 0);
      if (!(error instanceof EngineError)) {
        await this.#ours.release(standing.ref, standing.room, 0, until);
      }
      throw error;
    }
  }

  /** What can be said without writing anything. */
  async #refused(
    { resource, mode, limit }: Claim,
    hash: string,
    session: Session,
    room: string,
    line: Line,
    { until }: Timing,
  ): Promise<Queued | Gone | null> {
    if (isBuried(line, hash)) return { kind: "gone", why: "unknown" };
    const other = mode === "shared" ? otherLimit(line.contenders, limit) : undefined;
    if (other !== undefined) throw limitMismatch(resource, limit, other);
    if (!isBusy(line, mode, limit)) return null;
    const holders = await this.#views.holders(session, room, line, until);
    const position = line.contenders.length - line.holding;
    return { kind: "queued", position, nextHeartbeatMs: HEAD_BEAT_MS, holders };
  }

  /** Where a claim of ours stands, with a line that several may have been asked about together. */
  async #look(standing: Standing, timing: Timing, lines?: Map<string, Promise<Line>>) {
    const { session, room } = standing;
    standing.aheadMs = Math.min(standing.aheadMs, timing.at - timing.call.startedAt);
    // Core is there, whether or not the servers can be asked.
    const heardUntil = timing.at + FORGIVEN_BEATS * BEAT_MS;
    if (standing.state === "waiting") standing.deadline = Math.max(standing.deadline, heardUntil);
    await standing.entered;
    return this.#unlessOver(standing, async (): Promise<Place> => {
      const line = lines?.get(room) ?? this.#claims.rooms.line(session, room, timing.until);
      lines?.set(room, line);
      // Given up already; but that it is gone is for the servers to say.
      if (standing.state === "leaving") return { is: (await line) && "missing" };
      return this.#claims.look(standing, timing.until, line);
    }).then((place): Place => (place === "missing" ? { is: "missing" } : place));
  }

  async #answer(
    standing: Standing,
    place: Place,
    timing: Timing,
  ): Promise<Granted | Queued | Gone> {
    const { session, room } = standing;
    if (place.is === "revoked") return { kind: "gone", why: "revoked" };
    if (standing.state === "leaving") return { kind: "gone", why: "unknown" };
    if (place.is === "missing") {
      this.#ours.forget(standing);
      return { kind: "gone", why: "unknown" };
    }
    if (place.is === "buried") {
      this.#ours.abandon(standing);
      return { kind: "gone", why: "unknown" };
    }
    if (place.is === "granted") {
      const token = tokenOf(standing.czxid);
      const { tokens, ttlMs } = standing.claim;
      return { kind: "granted", token, tokens, ...this.#validity(standing, timing, ttlMs) };
    }
    const beatMs = place.position === 0 ? HEAD_BEAT_MS : BEAT_MS;
    standing.deadline = systemClock.now() + FORGIVEN_BEATS * beatMs;
    const { position, closedMs } = place;
    if (closedMs > 0) this.#openLater(standing, closedMs);
    const nextHeartbeatMs = closedMs > 0 ? Math.min(beatMs, Math.ceil(closedMs)) : beatMs;
    const holders = await this.#views.holders(session, room, place.line, timing.until);
    return { kind: "queued", position, nextHeartbeatMs, holders };
  }

  /** What the holder may believe ends before its node is taken away, by us or with the session. */
  #validity(standing: Standing, { call, at }: Timing, wantedMs: number) {
    const { session } = standing;
    const ttlMs = Math.min(wantedMs, session.leaseMs);
    standing.deadline = systemClock.now() + ttlMs;
    return { since: call.startedAt - Math.max(0, at - session.since), ttlMs };
  }

  /** Somebody before a waiter has left. */
  async #turn(standing: Standing): Promise<void> {
    const { session, room } = standing;
    if (standing.state !== "waiting" || this.#closed) return;
    try {
      const until = systemClock.now() + CLAIM_MS;
      const line = this.#claims.rooms.lineHere(session, room, until);
      const place = await this.#claims.look(standing, until, line);
      if (place.is === "granted") this.#push(standing);
      else if (place.is === "queued" && place.closedMs > 0) {
        this.#openLater(standing, place.closedMs);
      }
    } catch (error) {
      // The heartbeat will find out.
      emit("failed", () => ({ during: "push", error }));
    }
  }

  #push(standing: Standing): void {
    if (standing.state !== "granted" || this.#closed) return;
    const { session, claim, aheadMs, ref, czxid } = standing;
    const now = systemClock.now();
    const { since } = session;
    // Good for one claim window from now, whenever the session was last confirmed.
    const ttlMs = Math.min(claim.ttlMs, session.leaseMs, now - since + CLAIM_MS);
    standing.deadline = now + CLAIM_MS;
    const token = tokenOf(czxid);
    const granted = { token, tokens: claim.tokens, since: since - aheadMs, ttlMs };
    for (const listener of this.#grantListeners) listener(ref, { kind: "granted", ...granted });
  }

  #openLater(standing: Standing, closedMs: number): void {
    systemClock.timer(closedMs + 1, () => void this.#turn(standing), false);
  }

  #onSessionEnd(session: Session): void {
    const ended = this.#ours.endOf(session);
    for (const resource of new Set(ended.map(({ claim }) => claim.resource))) {
      this.#changed(resource);
    }
  }

  #changed(resource: string): void {
    for (const listener of this.#changeListeners) listener(resource);
  }

  /** A session that is over takes everything along, which is an answer and not a failure. */
  async #unlessOver<T>(standing: Standing, work: () => Promise<T>): Promise<T | "missing"> {
    try {
      return await work();
    } catch (error) {
      if (standing.session.over && !this.#closed) return "missing";
      throw error;
    }
  }

  #refuseUnsupported({ mode, lockDelayMs }: Claim): void {
    const { modes, lockDelay } = this.traits;
    if (modes.includes(mode) && (lockDelay || lockDelayMs === 0)) return;
    throw new UnsupportedError(`layout "${this.#terms.layout}" has exclusive locks only`);
  }

  #ask<T>(call: Call, work: (session: Session, until: number) => Promise<T>): Promise<T> {
    const { until } = this.#enter(call);
    return this.#sessions.on(
      () => this.#sessions.any(),
      (session) => work(session, until),
    );
  }

  #enter(call: Call): Timing {
    if (this.#closed) throw closedEngine();
    const at = systemClock.now();
    return { call, at, until: at + call.timeoutMs };
  }
}
