import { randomBytes } from "node:crypto";
import type { HolderView } from "../../../engine.js";
import { refusal } from "../failure.js";
import { type Layout, tombstoneName } from "../layout.js";
import { type NodeRecord, readRecord, tokenOf } from "../node-record.js";
import type { LeaderTime } from "../session/leader-time.js";
import { CODES } from "../wire/codes.js";
import { failedPart, multi } from "../wire/multi.js";
import {
  type AclKind,
  create,
  getChildren,
  getData,
  type Operation,
  remove,
  type Stat,
  setData,
  sync,
} from "../wire/operations.js";
import type { Answer } from "../wire/requests.js";
import type { Session } from "../wire/session.js";
import type { LeftNode } from "./lock-delays.js";
import { EMPTY_QUEUE, type Queue, readQueue } from "./queue.js";

const NOTHING = Buffer.alloc(0);
// The servers delete empty parents, even right after they were made.
const MOST_TRIES = 10;
const REMEMBERED = 1_000;

export interface FoundNode extends LeftNode {
  readonly record: NodeRecord;
  readonly stat: Stat;
  readonly data: Buffer;
  /** The zxid that made the holder's node: this node, or the one that it replaced. */
  readonly zxid: bigint;
  readonly isLeft: boolean;
}

/** Requests to ZooKeeper about a resource's node and its children. */
export class ResourceNodes {
  readonly #layout: Layout;
  readonly #acl: AclKind;
  /** Paths of resources whose node was there a while ago: there is no need to make them first. */
  readonly #lately = new Set<string>();
  readonly #listings = new WeakMap<Session, Map<string, Promise<Queue>>>();

  constructor(layout: Layout, acl: AclKind) {
    this.#layout = layout;
    this.#acl = acl;
  }

  /** The queue as it is now, with everything that any client was told before this call. */
  queue(session: Session, resourcePath: string, until: number): Promise<Queue> {
    return this.#listing(session, resourcePath, until, true);
  }

  /** The queue as the connected server knows it, our own last writes included. */
  queueHere(session: Session, resourcePath: string, until: number): Promise<Queue> {
    return this.#listing(session, resourcePath, until, false);
  }

  /**
   * Makes a member's node and reads the queue, in one round trip. An earlier release of this
   * grantId has left a tombstone, which is in the queue; a later release finds the node. The queue
   * is null if the node was made and the rest was lost.
   */
  async enter(session: Session, resourcePath: string, stem: string, data: Buffer, until: number) {
    const own = create(`${resourcePath}/${stem}`, data, "sequential", this.#acl);
    const parent = create(resourcePath, NOTHING, "container", this.#acl);
    let isThere = this.#lately.delete(resourcePath);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      if (tries > 1) await this.makeParents(session, resourcePath, until);
      const [, made, queue] = await Promise.all([
        isThere ? null : session.ask(parent, until),
        session.ask(own, until),
        this.queueHere(session, resourcePath, until).catch(() => null),
      ]);
      if (made.value !== null) {
        this.#remember(resourcePath);
        return { made: made.value, queue };
      }
      if (made.err !== CODES.noNode) throw refusal(made.err);
      isThere = false;
    }
    throw refusal(CODES.noNode);
  }

  /**
   * Makes a tombstone, which lives as long as our session: claims of a dead process cannot arrive.
   */
  async makeTombstone(
    session: Session,
    resourcePath: string,
    hash: string,
    until: number,
  ): Promise<string> {
    const tombstone = `${resourcePath}/${tombstoneName(hash)}`;
    const make = create(tombstone, NOTHING, "ephemeral", this.#acl);
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { err } = await session.ask(make, until);
      if (err === CODES.ok || err === CODES.nodeExists) return tombstone;
      if (err !== CODES.noNode) throw refusal(err);
      await this.makeParents(session, `${resourcePath}/.`, until);
    }
    throw refusal(CODES.noNode);
  }

  /** Makes a marker, which survives the expiry. False if the holder's own node is gone. */
  async mark(session: Session, own: Operation<null>, marker: string, until: number) {
    const made = create(marker, NOTHING, "persistent", this.#acl);
    const answer = await session.ask(multi([own, made]), until);
    const failed = failedPart(orThrow(answer));
    if (failed === null || (failed.at === 1 && failed.err === CODES.nodeExists)) return true;
    if (failed.err === CODES.noNode) return false;
    throw refusal(failed.err);
  }

  /** Deletes a node and its marker in one step. Returns whether the node existed. */
  async leave(
    session: Session,
    path: string,
    marker: string | null,
    until: number,
  ): Promise<boolean> {
    if (marker === null) {
      const { err } = await session.ask(remove(path), until);
      if (err !== CODES.ok && err !== CODES.noNode) throw refusal(err);
      return err === CODES.ok;
    }
    const failed = failedPart(
      orThrow(await session.ask(multi([remove(path), remove(marker)]), until)),
    );
    if (failed === null) return true;
    if (failed.err !== CODES.noNode) throw refusal(failed.err);
    // Somebody deleted the marker by hand, and the node must still be deleted.
    return failed.at === 1 ? this.leave(session, path, null, until) : false;
  }

  /**
   * Ends another holder's grant, only as it was read: it may have been passed on since, and be in
   * use.
   */
  async end(
    session: Session,
    found: FoundNode,
    marker: string | null,
    until: number,
  ): Promise<"ended" | "gone" | "changed"> {
    const own = remove(found.path, found.stat.version);
    const parts = marker === null ? [own] : [own, remove(marker)];
    const failed = failedPart(orThrow(await session.ask(multi(parts), until)));
    if (failed === null) return "ended";
    if (failed.err === CODES.badVersion) return "changed";
    if (failed.err !== CODES.noNode) throw refusal(failed.err);
    // Somebody deleted the marker by hand, and the node must still be deleted.
    return failed.at === 1 ? this.end(session, found, null, until) : "gone";
  }

  /** The nodes with these names that still exist, and their data. */
  async read(
    session: Session,
    resourcePath: string,
    names: readonly string[],
    until: number,
  ): Promise<FoundNode[]> {
    const paths = names.map((name) => `${resourcePath}/${name}`);
    const answers = await Promise.all(paths.map((path) => session.ask(getData(path), until)));
    return answers.flatMap(({ err, value }, i) => {
      if (err === CODES.noNode) return [];
      if (value === null) throw refusal(err);
      const { data, stat } = value;
      const left = this.#layout.read(names[i]!)?.left ?? null;
      const record = readRecord(data);
      const since = { atMs: stat.ctime, zxid: stat.czxid };
      return [
        {
          ...{ path: paths[i]!, record, stat, data, zxid: left ?? stat.czxid },
          ...{ isLeft: left !== null, ttlMs: record.ttlMs, since },
        },
      ];
    });
  }

  /**
   * Replaces the node in one step, so that watchers see a change. False if it is not as it was
   * read.
   */
  async leaveBehind(
    session: Session,
    own: { readonly path: string; readonly version: number },
    left: string,
    data: Buffer,
    until: number,
  ): Promise<boolean> {
    const { path, version } = own;
    const parts = [
      setData(path, data, version),
      remove(path, version + 1),
      create(left, data, "persistent", this.#acl),
    ];
    const failed = failedPart(orThrow(await session.ask(multi(parts), until)));
    if (failed === null) return true;
    if (failed.err === CODES.noNode || failed.err === CODES.badVersion) return false;
    throw refusal(failed.err);
  }

  /** The leader's clock, read from a node that is made for this. */
  async leaderNow(session: Session, resourcePath: string, until: number): Promise<LeaderTime> {
    const path = `${resourcePath}/clock-${randomBytes(8).toString("hex")}`;
    const made = await session.ask(create(path, NOTHING, "ephemeral", this.#acl), until);
    const { ctime, czxid } = orThrow(made).stat;
    await session.ask(remove(path), until);
    return { atMs: ctime, zxid: czxid };
  }

  /** The holders, each with the data of its node. */
  readHolders(
    session: Session,
    resourcePath: string,
    queue: Queue,
    until: number,
  ): Promise<FoundNode[]> {
    const names = queue.members.slice(0, queue.holding).map(({ name }) => name);
    return this.read(session, resourcePath, names, until);
  }

  /** Calls in the same turn of the event loop share one reading: queues can be long. */
  #listing(session: Session, resourcePath: string, until: number, synced: boolean): Promise<Queue> {
    const listings = this.#listings.get(session) ?? new Map<string, Promise<Queue>>();
    this.#listings.set(session, listings);
    const key = `${synced} ${resourcePath}`;
    const known = listings.get(key);
    if (known !== undefined) return known;
    const queue = new Promise<Queue>((resolve, reject) => {
      // Sent within the next tick, so that other requests to the same server share the write.
      process.nextTick(() => {
        listings.delete(key);
        this.#read(session, resourcePath, until, synced).then(resolve, reject);
      });
    });
    listings.set(key, queue);
    return queue;
  }

  async #read(
    session: Session,
    resourcePath: string,
    until: number,
    synced: boolean,
  ): Promise<Queue> {
    const [, children] = await Promise.all([
      synced ? session.ask(sync(resourcePath), until).then(orThrow) : null,
      session.ask(getChildren(resourcePath), until),
    ]);
    if (children.err === CODES.noNode) return EMPTY_QUEUE;
    return readQueue(orThrow(children).names, this.#layout);
  }

  #remember(resourcePath: string): void {
    this.#lately.add(resourcePath);
    if (this.#lately.size <= REMEMBERED) return;
    for (const oldest of this.#lately) {
      this.#lately.delete(oldest);
      break;
    }
  }

  /** Makes parents as containers: the servers delete them when they are empty. */
  async makeParents(session: Session, path: string, until: number): Promise<void> {
    const steps = path.split("/").slice(1, -1);
    for (let i = 1; i <= steps.length; i++) {
      const parent = `/${steps.slice(0, i).join("/")}`;
      const { err } = await session.ask(create(parent, NOTHING, "container", this.#acl), until);
      // Folders above our own may exist although we have no right to create in them.
      const passable = err === CODES.noAuth && i < steps.length;
      if (err !== CODES.ok && err !== CODES.nodeExists && !passable) throw refusal(err);
    }
  }
}

/** By default the whole ttl remains: its session may have been heard from just now. */
export function holderView(found: FoundNode, remainingMs = found.ttlMs): HolderView {
  const { mode, label, revoked } = found.record;
  return { mode, token: tokenInUse(found), label, remainingMs, revoked };
}

export function tokenInUse({ zxid, record }: FoundNode): bigint {
  return tokenOf(zxid) + BigInt(record.index);
}

function orThrow<T>({ err, value }: Answer<T>): T {
  if (value === null && err !== CODES.ok) throw refusal(err);
  return value as T;
}
