import type { Gone, Renewed, RenewRef } from "../../../engine.js";
import { settleEach } from "../../../engine-kit/settle-each.js";
import type { Place as Folder } from "../paths.js";
import { hashOf, pathOf } from "../paths.js";
import { prove } from "../session/majority.js";
import type { Sessions } from "../session/sessions.js";
import type { Session } from "../wire/session.js";
import type { Desk, Timing } from "./claim-service.js";
import type { Standing } from "./claim-state.js";
import type { Claims } from "./claims.js";
import type { Leavings } from "./leavings.js";
import type { Ours } from "./own-claims.js";

interface Tools {
  readonly sessions: Sessions;
  readonly claims: Claims;
  readonly ours: Ours;
  readonly desk: Desk;
  readonly leavings: Leavings;
}

const EXPIRED: Gone = { kind: "gone", why: "expired" };

/** Renews our grants. One request for each session, however many: what befalls a watched node is told. */
export class Renewals {
  readonly #folder: Folder;
  readonly #tools: Tools;

  constructor(folder: Folder, tools: Tools) {
    this.#folder = folder;
    this.#tools = tools;
  }

  renew(grants: readonly RenewRef[], timing: Timing) {
    const proofs = new Map<Session, Promise<void>>();
    return settleEach(grants, (ref) => this.#renew(ref, timing, proofs));
  }

  async #renew(
    ref: RenewRef,
    timing: Timing,
    proofs: Map<Session, Promise<void>>,
  ): Promise<Renewed | Gone> {
    const { claims, ours, desk } = this.#tools;
    const standing = ours.find(ref);
    if (standing === null) return this.#ofOneThatIsNotHere(ref, timing);
    const { session } = standing;
    const held = await desk.unlessOver(standing, async () => {
      const proof = proofs.get(session) ?? prove(session, standing.room, timing.until);
      proofs.set(session, proof);
      await proof;
      if (standing.state !== "granted") return standing.state;
      return claims.guards.verify(standing, timing.until, ref.index);
    });
    if (held === "waiting" || held === "entering") return { kind: "gone", why: "unknown" };
    if (held === "revoked") return { kind: "gone", why: "revoked" };
    if (held !== "held" || ours.find(ref) !== standing) {
      if (held === "missing") ours.forget(standing);
      return this.#ofOneThatIsNotHere(ref, timing);
    }
    // A later one has been carried out: what that gave stays as it is.
    if (timing.call.order < standing.order) {
      return { kind: "renewed", ...desk.remaining(standing, timing) };
    }
    standing.order = timing.call.order;
    if (ref.leave) return this.#leave(standing, ref, timing);
    return { kind: "renewed", ...desk.validity(standing, timing, ref.ttlMs) };
  }

  async #leave(standing: Standing, ref: RenewRef, timing: Timing): Promise<Renewed | Gone> {
    const { ours, desk, leavings } = this.#tools;
    const { ttlMs, index = 0 } = ref;
    const outcome = await desk.unlessOver(standing, () =>
      leavings.leave(standing, ttlMs, index, timing.until),
    );
    if (outcome === "revoked") return { kind: "gone", why: "revoked" };
    if (outcome === "missing") {
      ours.forget(standing);
      return this.#ofOneThatIsNotHere(ref, timing);
    }
    ours.left(standing, timing.at + ttlMs);
    return { kind: "renewed", since: timing.call.startedAt, ttlMs };
  }

  /** It may have been left behind already: by a request whose answer was lost. */
  async #ofOneThatIsNotHere(ref: RenewRef, { call, at, until }: Timing): Promise<Renewed | Gone> {
    if (!ref.leave) return EXPIRED;
    const { ours, sessions, leavings } = this.#tools;
    const endsAt = ours.leftUntil(ref);
    const since = call.startedAt;
    if (endsAt !== null) return { kind: "renewed", since, ttlMs: Math.max(0, endsAt - at) };
    const room = pathOf(this.#folder, ref.resource);
    const leftMs = await sessions.on(
      () => sessions.any(),
      (session) => leavings.leftMs(session, room, hashOf(ref.grantId), until),
    );
    return leftMs === null ? EXPIRED : { kind: "renewed", since, ttlMs: leftMs };
  }
}
