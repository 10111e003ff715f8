import { systemClock } from "../../../core/runtime/clock.js";
import { leftName } from "../layout.js";
import { amended } from "../node-record.js";
import type { Session } from "../wire/session.js";
import type { ClaimState } from "./claim-state.js";
import type { Claims } from "./claims.js";

const MOST_TRIES = 5;

/**
 * Leaves grants behind. The holder's node ends with its session, so it is replaced by one that does
 * not, at the same place in the queue. A client that finds that its time is over deletes it.
 * Watchers of the first node are told of a change, not of a deletion: the next waiter would take a
 * deletion for its turn.
 */
export class LeftGrants {
  readonly #claims: Claims;

  constructor(claims: Claims) {
    this.#claims = claims;
  }

  async leave(
    claimState: ClaimState,
    ttlMs: number,
    index: number,
    until: number,
  ): Promise<"left" | "revoked" | "missing"> {
    const { resourceNodes, nodeWatches } = this.#claims;
    for (let tries = 1; ; tries++) {
      const held = await nodeWatches.verify(claimState, until, index);
      if (held !== "held") return held;
      const { session, resourcePath, czxid, data, version } = claimState;
      const left = `${resourcePath}/${leftName(claimState.name, czxid)}`;
      const said = amended(data, { ttlMs });
      const done = await claimState.writing(() =>
        resourceNodes.leaveBehind(session, { path: claimState.path!, version }, left, said, until),
      );
      if (done) return "left";
      claimState.unwatchOwn();
      if (tries === MOST_TRIES) return "missing";
    }
  }

  /** The remaining time of a grant that was left behind; null if there is none with this hash. */
  async leftMs(session: Session, resourcePath: string, hash: string, until: number) {
    const { resourceNodes, lockDelays } = this.#claims;
    const queue = await resourceNodes.queue(session, resourcePath, until);
    const names = queue.members.filter((one) => one.hash === hash && one.left !== null);
    const [found] = await resourceNodes.read(
      session,
      resourcePath,
      names.map(({ name }) => name),
      until,
    );
    if (found === undefined) return null;
    const asked = systemClock.now();
    const now = await resourceNodes.leaderNow(session, resourcePath, until);
    // The time that the answer took does not count.
    return Math.max(0, lockDelays.leftBehindMs(found, now) - (systemClock.now() - asked));
  }
}
