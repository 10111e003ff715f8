import { systemClock } from "../../../core/runtime/clock.js";
import { leftName } from "../layout.js";
import { amended } from "../record.js";
import type { Session } from "../wire/session.js";
import type { Standing } from "./claim-state.js";
import type { Claims } from "./claims.js";

const MOST_TRIES = 5;

/**
 * Leaves grants behind. The holder's node, which ends with its session, is replaced by one that does
 * not, at the same place in line; whoever finds that its time is over takes it away. Who watches the
 * first node is told that it was changed, and not that it was deleted: the next in line would take
 * that for its turn.
 */
export class Leavings {
  readonly #claims: Claims;

  constructor(claims: Claims) {
    this.#claims = claims;
  }

  async leave(
    standing: Standing,
    ttlMs: number,
    index: number,
    until: number,
  ): Promise<"left" | "revoked" | "missing"> {
    const { rooms, guards } = this.#claims;
    for (let tries = 1; ; tries++) {
      const held = await guards.verify(standing, until, index);
      if (held !== "held") return held;
      const { session, room, czxid, data, version } = standing;
      const left = `${room}/${leftName(standing.name, czxid)}`;
      const said = amended(data, { ttlMs });
      const done = await standing.writing(() =>
        rooms.leaveBehind(session, { path: standing.path!, version }, left, said, until),
      );
      if (done) return "left";
      standing.unguard();
      if (tries === MOST_TRIES) return "missing";
    }
  }

  /** How much is left of a grant that was left behind; null if there is none of this hash. */
  async leftMs(session: Session, room: string, hash: string, until: number) {
    const { rooms, closings } = this.#claims;
    const line = await rooms.line(session, room, until);
    const names = line.contenders.filter((one) => one.hash === hash && one.left !== null);
    const [found] = await rooms.read(
      session,
      room,
      names.map(({ name }) => name),
      until,
    );
    if (found === undefined) return null;
    const asked = systemClock.now();
    const now = await rooms.leaderNow(session, room, until);
    // What passed on the way is not ours to promise.
    return Math.max(0, closings.leftBehindMs(found, now) - (systemClock.now() - asked));
  }
}
