import type { HolderView, ResourceView, RevokeRef, Sequence } from "../../../engine.js";
import { UnsupportedError } from "../../../errors.js";
import { emit } from "../../../events.js";
import type { Claims } from "../claims/claims.js";
import { markerOf, type Queue } from "../claims/queue.js";
import { type FoundNode, holderView, tokenInUse } from "../claims/resource-nodes.js";
import { refusal } from "../failure.js";
import { amended, isOurRecord, tokenOf } from "../node-record.js";
import { type Location, pathOf } from "../paths.js";
import { prove } from "../session/prove.js";
import { CODES } from "../wire/codes.js";
import { setData } from "../wire/operations.js";
import type { Session } from "../wire/session.js";

const MOST_TRIES = 5;

/** Shows and checks the grants of any client, and revokes them. */
export class Views {
  readonly #claims: Claims;
  readonly #location: Location;
  readonly #holdersOf = new WeakMap<Queue, Promise<HolderView[]>>();

  constructor(claims: Claims, location: Location) {
    this.#claims = claims;
    this.#location = location;
  }

  /** The holders in a reading of a queue. Waiters that share the reading share the answer. */
  holders(
    session: Session,
    resourcePath: string,
    queue: Queue,
    until: number,
  ): Promise<HolderView[]> {
    const views = this.#holdersOf.get(queue) ?? this.#holders(session, resourcePath, queue, until);
    this.#holdersOf.set(queue, views);
    return views;
  }

  /** Only shown to people, so a failure here must not fail the answer that it belongs to. */
  async #holders(
    session: Session,
    resourcePath: string,
    queue: Queue,
    until: number,
  ): Promise<HolderView[]> {
    try {
      const found = await this.#claims.resourceNodes.readHolders(
        session,
        resourcePath,
        queue,
        until,
      );
      return found.map((one) => holderView(one));
    } catch (error) {
      emit("failed", () => ({ during: "holders", error }));
      return [];
    }
  }

  /** Somebody writes data after this answer, so the word of a replaced leader is not enough. */
  async check(session: Session, { resource, mode, token }: Sequence, until: number) {
    const [, { found }] = await Promise.all([
      prove(session, pathOf(this.#location, resource), until),
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
    const { resourceNodes } = this.#claims;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { found, queue, resourcePath } = await this.#find(session, resource, token, until);
      if (found === null || tokenInUse(found) !== token) return "gone";
      const { path, stat, data } = found;
      if ((await this.#leftMs(session, [found], until)).get(found) === 0) return "gone";
      if (force) {
        const member = queue.members.find(({ name }) => path === `${resourcePath}/${name}`)!;
        const marker = markerOf(queue, resourcePath, member);
        const ended = await resourceNodes.end(session, found, marker, until);
        if (ended === "changed") continue;
        return ended === "ended" ? "revoked" : "gone";
      }
      if (!isOurRecord(data)) {
        throw new UnsupportedError(
          `"${resource}" is held by another program, which cannot be told; force ends its grant`,
        );
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
    const resourcePath = pathOf(this.#location, resource);
    const { resourceNodes, lockDelays } = this.#claims;
    const queue = await resourceNodes.queue(session, resourcePath, until);
    const names = queue.members.map(({ name }) => name);
    const found = await resourceNodes.read(session, resourcePath, names, until);
    const holding = new Set(names.slice(0, queue.holding).map((name) => `${resourcePath}/${name}`));
    const waiters = found.filter(({ path }) => !holding.has(path));
    const leftMs = await this.#leftMs(session, found, until);
    const holders = found.filter((one) => holding.has(one.path) && leftMs.get(one) !== 0);
    return {
      resource,
      holders: holders.map((one) => holderView(one, leftMs.get(one))),
      waiters: waiters.map(({ record: { mode, label } }, position) => ({ mode, label, position })),
      closedMs: await lockDelays.leftMs(session, resourcePath, queue.orphans, null, until),
    };
  }

  /**
   * The remaining times of grants that were left behind; 0 for a grant that is over and was not
   * deleted yet. Other grants are not in the map.
   */
  async #leftMs(
    session: Session,
    all: readonly FoundNode[],
    until: number,
  ): Promise<ReadonlyMap<FoundNode, number>> {
    const { resourceNodes, lockDelays } = this.#claims;
    const left = all.filter(({ isLeft }) => isLeft);
    if (left.length === 0) return new Map();
    const resourcePath = left[0]!.path.slice(0, left[0]!.path.lastIndexOf("/"));
    const now = await resourceNodes.leaderNow(session, resourcePath, until);
    return new Map(left.map((one) => [one, Math.max(0, lockDelays.leftBehindMs(one, now))]));
  }

  /** The grant that this token belongs to. */
  async #find(session: Session, resource: string, token: bigint, until: number) {
    const resourcePath = pathOf(this.#location, resource);
    const { resourceNodes } = this.#claims;
    const queue = await resourceNodes.queue(session, resourcePath, until);
    const all = await resourceNodes.readHolders(session, resourcePath, queue, until);
    const found: FoundNode | null =
      all.find(({ zxid, record }) => {
        const first = tokenOf(zxid);
        return token >= first && token < first + BigInt(record.tokens);
      }) ?? null;
    return { found, queue, resourcePath };
  }
}
