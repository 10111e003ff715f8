import { systemClock } from "../../../core/runtime/clock.js";
import type { Claim } from "../../../engine.js";
import { EngineError, limitMismatch } from "../../../errors.js";
import { inDoubt, refusal, withoutEffect } from "../failure.js";
import { type Contender, type Layout, markerName } from "../layout.js";
import { readRecord, tokenOf, writeRecord } from "../record.js";
import { CODES, check } from "../wire/operations.js";
import type { WatchEvent } from "../wire/watches.js";
import type { Standing } from "./claim-state.js";
import { Closings } from "./lock-delay.js";
import { Guards } from "./node-watches.js";
import { blockers, isBuried, type Line, otherLimit } from "./queue.js";
import type { Rooms } from "./resource-node.js";

const MOST_LOOKS = 20;
const MOST_ENTRIES = 5;
/** A grant that lives shorter than this is not worth a watch on its node. */
const GUARD_AFTER_MS = 100;

export type Place =
  | { readonly is: "granted" }
  | {
      readonly is: "queued";
      readonly position: number;
      readonly line: Line;
      readonly closedMs: number;
    }
  | { readonly is: "missing" }
  | { readonly is: "revoked" }
  | { readonly is: "buried" };

/** Brings our claims into the line, and says where in it they stand. */
export class Claims {
  readonly rooms: Rooms;
  readonly closings = new Closings();
  readonly guards: Guards;
  readonly #layout: Layout;
  readonly #onTurn: (standing: Standing, granted: boolean) => void;

  /**
   * onTurn: somebody before a waiter left; granted, if that was all that it waited for. onChange: its
   * own node was changed or deleted.
   */
  constructor(
    rooms: Rooms,
    layout: Layout,
    onTurn: (standing: Standing, granted: boolean) => void,
    onChange: (standing: Standing) => void,
  ) {
    this.rooms = rooms;
    this.#layout = layout;
    this.#onTurn = onTurn;
    this.guards = new Guards(onChange);
  }

  /**
   * Makes the node of a claim and looks where it stands. When the answer is lost, the node is found
   * by its name: as long as the session lives, nobody has to do without an answer.
   */
  async enter(standing: Standing, until: number): Promise<Place> {
    const { claim, hash, room, session } = standing;
    const stem = this.#layout.stem(claim, hash);
    const data = writeRecord(claim, Math.min(claim.ttlMs, session.leaseMs));
    for (let tries = 1; ; tries++) {
      try {
        if (standing.path === null && standing.doubtful) {
          const line = await this.rooms.line(session, room, until);
          if (isBuried(line, hash)) return { is: "buried" };
          await this.#recover(standing, line, until);
        }
        if (standing.path !== null) return await this.look(standing, until);
        const { made, line } = await this.rooms.enter(session, room, stem, data, until);
        this.#own(standing, made.path, made.stat.czxid, made.stat.ctime);
        if (line !== null) return await this.#place(standing, line, until, true);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        if (session.expired) throw withoutEffect(error);
        standing.doubtful ||= error.effect === "unknown";
        const again = error.retryable && !session.over && systemClock.now() < until;
        if (!again || tries === MOST_ENTRIES) throw standing.doubtful ? inDoubt(error) : error;
      }
    }
  }

  /** Where it stands now; with a line that was just read, or one that is read for it. */
  async look(standing: Standing, until: number, line?: Promise<Line>): Promise<Place> {
    const { session, room } = standing;
    const now = await (line ?? this.rooms.line(session, room, until));
    return this.#place(standing, now, until);
  }

  /**
   * Where it stands now that somebody before it left. Likely it is next, and then its own node is asked
   * for as well: both questions travel together, so that a hand-over is one round trip.
   */
  async lookNext(standing: Standing, until: number): Promise<Place> {
    const line = this.rooms.lineHere(standing.session, standing.room, until);
    // Whoever needs the answer asks again, and is told what went wrong.
    const own = this.guards.verify(standing, until).catch(() => null);
    const place = await this.look(standing, until, line);
    if (place.is === "granted") return place;
    await own;
    if (standing.state === "waiting" && standing.lastBefore === null) standing.unguard();
    return place;
  }

  #own(standing: Standing, path: string, czxid: bigint, madeAt: bigint): void {
    tokenOf(czxid);
    standing.made(path, czxid, madeAt);
    if (standing.state === "entering") standing.state = "waiting";
  }

  /** A node that was made although we never heard of it. */
  async #recover(standing: Standing, line: Line, until: number): Promise<void> {
    const { session, room, hash } = standing;
    const own = line.contenders.find((contender) => contender.hash === hash);
    if (own === undefined) return;
    const [found] = await this.rooms.read(session, room, [own.name], until);
    if (found !== undefined) {
      this.#own(standing, found.path, found.stat.czxid, found.stat.ctime);
    }
  }

  async #place(standing: Standing, first: Line, until: number, fresh = false): Promise<Place> {
    const { session, room, hash } = standing;
    let line = first;
    for (let looks = 0; looks < MOST_LOOKS; looks++) {
      const at = line.at.get(standing.name) ?? -1;
      if (isBuried(line, hash)) return { is: "buried" };
      if (at < 0) return { is: "missing" };
      if (standing.state === "granted") return this.#still(standing, until);
      const left = await this.#leftBehind(standing, line.contenders.slice(0, at), until);
      if (left === null) {
        line = await this.rooms.lineHere(session, room, until);
        continue;
      }
      this.#refuseOtherLimit(standing.claim, line.contenders, at);
      const before = blockers(line.contenders, at);
      if (before.length === 0) return this.#grant(standing, line, until, fresh);
      // Then its leaving is all that it takes, if we hear as well of what befalls our own node.
      const isLast = at === 1 && line.markers.length === 0 && standing.claim.lockDelayMs === 0;
      if (await this.#watchAll(standing, before, isLast, until)) {
        const closedMs = Math.min(...before.map(({ name }) => left.get(name) ?? Infinity));
        const position = at - line.holding;
        return { is: "queued", position, line, closedMs: closedMs === Infinity ? 0 : closedMs };
      }
      line = await this.rooms.lineHere(session, room, until);
    }
    throw new EngineError("the line moves faster than it can be read", {
      ...{ effect: "unknown", retryable: true },
    });
  }

  /**
   * How much is left of those before it that were left behind, by their names. Null when one of them was
   * gone, or over and taken away: then the line must be read again.
   */
  async #leftBehind(
    standing: Standing,
    before: readonly Contender[],
    until: number,
  ): Promise<ReadonlyMap<string, number> | null> {
    const { session, room, leaderNow, lefts } = standing;
    const names = before.filter(({ left }) => left !== null).map(({ name }) => name);
    const left = new Map<string, number>();
    if (names.length === 0 || leaderNow === null) return left;
    const unread = names.filter((name) => !lefts.has(name));
    const found = await this.rooms.read(session, room, unread, until);
    if (found.length < unread.length) return null;
    for (const one of found) lefts.set(one.path.slice(room.length + 1), one);
    for (const name of names)
      left.set(name, this.closings.leftBehindMs(lefts.get(name)!, leaderNow));
    const over = names.filter((name) => left.get(name)! <= 0);
    for (const name of over) await this.rooms.leave(session, `${room}/${name}`, null, until);
    return over.length > 0 ? null : left;
  }

  async #still(standing: Standing, until: number): Promise<Place> {
    const held = await this.guards.verify(standing, until);
    return held === "held" ? { is: "granted" } : { is: held };
  }

  async #grant(standing: Standing, line: Line, until: number, fresh: boolean): Promise<Place> {
    const { session, room, claim, leaderNow, czxid, path } = standing;
    const { orphans } = line;
    if (orphans.length > 0) {
      const closedMs = await this.closings.leftMs(session, room, orphans, leaderNow, until);
      if (closedMs > 0) return { is: "queued", position: 0, line, closedMs };
      await this.closings.open(session, room, orphans, until);
    }
    if (claim.lockDelayMs > 0 && path !== null) {
      const { number } = line.contenders[line.at.get(standing.name)!]!;
      const holder = { hash: standing.hash, czxid, number };
      standing.marker = `${room}/${markerName(claim.lockDelayMs, holder)}`;
      const marked = await this.rooms.mark(session, check(path), standing.marker, until);
      if (!marked) return { is: "missing" };
    }
    // One that waited may have been revoked before it knew that it holds; a new one hardly.
    if (!fresh) {
      const held = await this.guards.verify(standing, until);
      if (held !== "held") return { is: held };
    }
    if (standing.state === "waiting") standing.state = "granted";
    if (!standing.guarded) standing.guardFrom = systemClock.now() + GUARD_AFTER_MS;
    const keep = path !== null && standing.guarded ? new Set([path]) : undefined;
    standing.unwatch(keep);
    return { is: "granted" };
  }

  /** False when one of them left before we could listen: then the line must be read again. */
  async #watchAll(
    standing: Standing,
    before: readonly Contender[],
    isLast: boolean,
    until: number,
  ): Promise<boolean> {
    const { room, path: own, watching } = standing;
    const paths = before.map(({ name }) => `${room}/${name}`);
    standing.lastBefore = null;
    if (!isLast) standing.unguard();
    standing.unwatch(new Set(isLast && own !== null ? [...paths, own] : paths));
    const missing = paths.filter((path) => !watching.has(path));
    const [answers, guarded] = await Promise.all([
      Promise.all(missing.map((path) => this.#watchOne(standing, path, until))),
      isLast ? this.guards.verify(standing, until).catch(() => null) : null,
    ]);
    // A waiter that was given up meanwhile has nobody to tell.
    if (standing.state === "leaving") standing.unwatch();
    const all = answers.every(Boolean) && paths.every((path) => watching.has(path));
    if (all && guarded === "held") standing.lastBefore = paths[0]!;
    return all;
  }

  async #watchOne(standing: Standing, path: string, until: number): Promise<boolean> {
    const { session, watching } = standing;
    const listener = (event: WatchEvent) => {
      if (!watching.delete(path)) return;
      this.#onTurn(standing, event === "deleted" && this.#takesOver(standing, path));
    };
    watching.set(path, listener);
    try {
      const { err, value } = await session.watch(path, until, listener);
      if (value !== null) {
        if (readRecord(value.data).lockDelayMs === 0) standing.quiet = path;
        return true;
      }
      if (err !== CODES.noNode) throw refusal(err);
      watching.delete(path);
      return false;
    } catch (error) {
      watching.delete(path);
      throw error;
    }
  }

  /**
   * Granted without a question. Nobody can come in before us, so the line that was read then holds
   * still: nobody but that one was there, and it was the one to leave a marker, if anybody. Had our
   * own node been touched before, the server would have told us before.
   */
  #takesOver(standing: Standing, path: string): boolean {
    const { state, lastBefore, quiet, guarded, revoked, path: own } = standing;
    if (state !== "waiting" || !guarded || revoked || own === null) return false;
    if (lastBefore !== path || quiet !== path) return false;
    standing.state = "granted";
    standing.unwatch(new Set([own]));
    return true;
  }

  #refuseOtherLimit(claim: Claim, contenders: readonly Contender[], at: number): void {
    if (claim.mode !== "shared") return;
    const other = otherLimit(contenders.slice(0, at), claim.limit);
    if (other !== undefined) throw limitMismatch(claim.resource, claim.limit, other);
  }
}
