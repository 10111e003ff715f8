import type { HolderView, ResourceView, RevokeRef, Sequence } from "../../../engine.js";
import { emit } from "../../../events.js";
import type { Claims } from "../claims/claims.js";
import { type Line, markerOf } from "../claims/queue.js";
import { type Found, holderView, tokenInUse } from "../claims/resource-node.js";
import { refusal } from "../failure.js";
import { type Place, pathOf } from "../paths.js";
import { amended, tokenOf } from "../record.js";
import { prove } from "../session/majority.js";
import { CODES, setData } from "../wire/operations.js";
import type { Session } from "../wire/session.js";

const MOST_TRIES = 5;

/** What is read and told, about anybody's grants. */
export class Views {
  readonly #claims: Claims;
  readonly #place: Place;
  readonly #told = new WeakMap<Line, Promise<HolderView[]>>();

  constructor(claims: Claims, place: Place) {
    this.#claims = claims;
    this.#place = place;
  }

  /** Who waits for the same reading of a line is told the same. */
  holders(session: Session, room: string, line: Line, until: number): Promise<HolderView[]> {
    const told = this.#told.get(line) ?? this.#holders(session, room, line, until);
    this.#told.set(line, told);
    return told;
  }

  /** For people, beside an answer that is right without it: a failure here must not cost that. */
  async #holders(session: Session, room: string, line: Line, until: number): Promise<HolderView[]> {
    try {
      const found = await this.#claims.rooms.readHolders(session, room, line, until);
      return found.map((one) => holderView(one));
    } catch (error) {
      emit("failed", () => ({ during: "holders", error }));
      return [];
    }
  }

  /** Not by the word of a leader that is none any more: somebody writes data by this answer. */
  async check(session: Session, { resource, mode, token }: Sequence, until: number) {
    const [, { found }] = await Promise.all([
      prove(session, pathOf(this.#place, resource), until),
      this.#find(session, resource, token, until),
    ]);
    if (found === null || found.record.mode !== mode || found.record.revoked) return false;
    return (await this.#leftMs(session, [found], until)).get(found) !== 0;
  }

  async revoke(
    session: Session,
    { resource, token, force }: RevokeRef,
    until: number,
  ): Promise<"revoked" | "gone"> {
    const { rooms } = this.#claims;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { found, line, room } = await this.#find(session, resource, token, until);
      if (found === null || tokenInUse(found) !== token) return "gone";
      const { path, stat, data } = found;
      if ((await this.#leftMs(session, [found], until)).get(found) === 0) return "gone";
      if (force) {
        const contender = line.contenders.find(({ name }) => path === `${room}/${name}`)!;
        const marker = markerOf(line, room, contender);
        const ended = await rooms.end(session, found, marker, until);
        if (ended === "changed") continue;
        return ended === "ended" ? "revoked" : "gone";
      }
      const { err } = await session.ask(
        setData(path, amended(data, { revoked: true }), stat.version),
        until,
      );
      if (err === CODES.ok) return "revoked";
      if (err === CODES.noNode) return "gone";
      if (err !== CODES.badVersion) throw refusal(err);
    }
    throw refusal(CODES.badVersion);
  }

  async inspect(session: Session, resource: string, until: number): Promise<ResourceView> {
    const room = pathOf(this.#place, resource);
    const { rooms, closings } = this.#claims;
    const line = await rooms.line(session, room, until);
    const names = line.contenders.map(({ name }) => name);
    const found = await rooms.read(session, room, names, until);
    const holding = new Set(names.slice(0, line.holding).map((name) => `${room}/${name}`));
    const waiters = found.filter(({ path }) => !holding.has(path));
    const leftMs = await this.#leftMs(session, found, until);
    const holders = found.filter((one) => holding.has(one.path) && leftMs.get(one) !== 0);
    return {
      resource,
      holders: holders.map((one) => holderView(one, leftMs.get(one))),
      waiters: waiters.map(({ record: { mode, label } }, position) => ({ mode, label, position })),
      closedMs: await closings.leftMs(session, room, line.orphans, null, until),
    };
  }

  /**
   * How much is left of those that were left behind; 0 for one that is over and that nobody has taken
   * away yet. Others are not in it.
   */
  async #leftMs(
    session: Session,
    all: readonly Found[],
    until: number,
  ): Promise<ReadonlyMap<Found, number>> {
    const { rooms, closings } = this.#claims;
    const left = all.filter(({ isLeft }) => isLeft);
    if (left.length === 0) return new Map();
    const room = left[0]!.path.slice(0, left[0]!.path.lastIndexOf("/"));
    const now = await rooms.leaderNow(session, room, until);
    return new Map(left.map((one) => [one, Math.max(0, closings.leftBehindMs(one, now))]));
  }

  /** The grant that this token belongs to. */
  async #find(session: Session, resource: string, token: bigint, until: number) {
    const room = pathOf(this.#place, resource);
    const { rooms } = this.#claims;
    const line = await rooms.line(session, room, until);
    const all = await rooms.readHolders(session, room, line, until);
    const found: Found | null =
      all.find(({ zxid, record }) => {
        const first = tokenOf(zxid);
        return token >= first && token < first + BigInt(record.tokens);
      }) ?? null;
    return { found, line, room };
  }
}
