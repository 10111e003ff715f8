import type { Gone, Renewed, RenewRef } from "../../../engine.js";
import { settleEach } from "../../../engine-kit/settle-each.js";
import { hashOf, type Location, pathOf } from "../paths.js";
import { prove } from "../session/prove.js";
import type { Sessions } from "../session/sessions.js";
import type { Session } from "../wire/session.js";
import type { ClaimService, Timing } from "./claim-service.js";
import type { ClaimState } from "./claim-state.js";
import type { Claims } from "./claims.js";
import type { LeftGrants } from "./left-grants.js";
import type { OwnClaims } from "./own-claims.js";

interface Tools {
  readonly sessions: Sessions;
  readonly claims: Claims;
  readonly ownClaims: OwnClaims;
  readonly claimService: ClaimService;
  readonly leftGrants: LeftGrants;
}

const EXPIRED: Gone = { kind: "gone", why: "expired" };

/**
 * Renews our grants. Each session needs one request: watches report changes of the single nodes.
 */
export class Renewals {
  readonly #location: Location;
  readonly #tools: Tools;

  constructor(location: Location, tools: Tools) {
    this.#location = location;
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
    const { claims, ownClaims, claimService } = this.#tools;
    const claimState = ownClaims.find(ref);
    if (claimState === null) return this.#ofOneThatIsNotHere(ref, timing);
    const { session } = claimState;
    const held = await claimService.unlessOver(claimState, async () => {
      const proof = proofs.get(session) ?? prove(session, claimState.resourcePath, timing.until);
      proofs.set(session, proof);
      await proof;
      if (claimState.state !== "granted") return claimState.state;
      return claims.nodeWatches.verify(claimState, timing.until, ref.index);
    });
    if (held === "waiting" || held === "entering") return { kind: "gone", why: "unknown" };
    if (held === "revoked") return { kind: "gone", why: "revoked" };
    if (held !== "held" || ownClaims.find(ref) !== claimState) {
      if (held === "missing") ownClaims.forget(claimState);
      return this.#ofOneThatIsNotHere(ref, timing);
    }
    // A later renewal has already taken effect, so this one changes nothing.
    if (timing.call.order < claimState.order) {
      return { kind: "renewed", ...claimService.remaining(claimState, timing) };
    }
    claimState.order = timing.call.order;
    if (ref.leave) return this.#leave(claimState, ref, timing);
    return { kind: "renewed", ...claimService.validity(claimState, timing, ref.ttlMs) };
  }

  async #leave(claimState: ClaimState, ref: RenewRef, timing: Timing): Promise<Renewed | Gone> {
    const { ownClaims, claimService, leftGrants } = this.#tools;
    const { ttlMs, index = 0 } = ref;
    const outcome = await claimService.unlessOver(claimState, () =>
      leftGrants.leave(claimState, ttlMs, index, timing.until),
    );
    if (outcome === "revoked") return { kind: "gone", why: "revoked" };
    if (outcome === "missing") {
      ownClaims.forget(claimState);
      return this.#ofOneThatIsNotHere(ref, timing);
    }
    ownClaims.left(claimState, timing.at + ttlMs);
    return { kind: "renewed", since: timing.call.startedAt, ttlMs };
  }

  /** The grant may have been left behind already, by a request whose answer was lost. */
  async #ofOneThatIsNotHere(ref: RenewRef, { call, at, until }: Timing): Promise<Renewed | Gone> {
    if (!ref.leave) return EXPIRED;
    const { ownClaims, sessions, leftGrants } = this.#tools;
    const endsAt = ownClaims.leftUntil(ref);
    const since = call.startedAt;
    if (endsAt !== null) return { kind: "renewed", since, ttlMs: Math.max(0, endsAt - at) };
    const resourcePath = pathOf(this.#location, ref.resource);
    const leftMs = await sessions.on(
      () => sessions.any(),
      (session) => leftGrants.leftMs(session, resourcePath, hashOf(ref.grantId), until),
    );
    return leftMs === null ? EXPIRED : { kind: "renewed", since, ttlMs: leftMs };
  }
}
