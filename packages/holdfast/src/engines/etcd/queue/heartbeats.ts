import { systemClock } from "../../../core/runtime/clock.js";
import type { Failed, GrantRef } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { failedRequest } from "../client/failure.js";
import { countOf, found, get, type KeyValue, range } from "../client/requests.js";
import type { TrackedClaims, WaitingClaim } from "../holding/tracked-claims.js";
import type { LeasePool } from "../leases/lease-pool.js";
import type { SharedLease } from "../leases/leases.js";
import { readRecord } from "./key-record.js";
import { type Keys, markersIn } from "./keys.js";
import { isFarBehind, MOST_HOLDERS } from "./long-queues.js";
import { type Predecessor, Queue, type QueueMember } from "./queue.js";
import type { QueueAnswer } from "./queue-answer.js";
import { HEAD_SIZE, type QueueReader } from "./queue-reader.js";
import type { QueueTurns } from "./queue-turns.js";
import type { WaiterKeys } from "./waiter-keys.js";

const MOST_GETS = 100;
/** etcd takes 128 operations in a transaction by default. */
const MOST_KEYS = 120;
/** Waiters' leases are kept alive with each heartbeat. */
const RECENT = 0.2;
/** The lease that a waiter needs once it holds is kept ready. */
const READY = 0.3;

interface Tools {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly leasePool: LeasePool;
  readonly queueReader: QueueReader;
  readonly turns: QueueTurns;
  readonly waiterKeys: WaiterKeys;
  readonly trackedClaims: TrackedClaims;
}

/** Sends the heartbeats of one process: one reading for all waiters of the same resource. */
export class Heartbeats {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** Answers in the order of the waiters. Each resource is answered as soon as it is read. */
  async beat<T>(
    waiters: readonly GrantRef[],
    deadline: number,
    answer: (ref: GrantRef, queueAnswer: QueueAnswer | Failed) => Promise<T>,
  ): Promise<T[]> {
    const answers = new Map<GrantRef, T>();
    const works = batches(waiters).map(async ([resource, refs]) => {
      const queueAnswers = await this.#ofResource(resource, refs, deadline).catch(failed(refs));
      const answered = refs.map(async (ref, i) =>
        answers.set(ref, await answer(ref, queueAnswers[i]!)),
      );
      await Promise.all(answered);
    });
    await Promise.all(works);
    return waiters.map((ref) => answers.get(ref)!);
  }

  async #ofResource(
    resource: string,
    refs: readonly GrantRef[],
    deadline: number,
  ): Promise<(QueueAnswer | Failed)[]> {
    const known = refs.flatMap((ref) => this.#tools.trackedClaims.waiter(ref) ?? []);
    await Promise.all(known.map(({ self }) => this.#keepReady(self, deadline)));
    const far = known.length === refs.length ? await this.#farBehind(known, deadline) : null;
    if (far !== null) return far;
    const keyRange = this.#tools.keys.rangeOf(resource);
    const exclusive = known.every(({ self }) => readRecord(self)?.mode === "exclusive");
    const whole = known.length < refs.length || !exclusive;
    const answer = await this.#tools.client.txn(
      {
        compare: [],
        success: [
          range(keyRange, { order: "ASCEND", ...(whole ? {} : { limit: HEAD_SIZE }) }),
          range(markersIn(keyRange)),
          ...refs.map((ref) => get(this.#tools.keys.claimKey(resource, ref.grantId))),
        ],
        failure: [],
      },
      { deadline, repeatable: true, urgent: true },
    );
    const first = found(answer, 0);
    const seen = new Queue([...first, ...found(answer, 1)]);
    const complete = first.length === countOf(answer, 0);
    // A marker is not an orphan if its grant is merely outside the part that was read.
    const unclear = !complete && seen.orphans.length > 0;
    const queue = unclear ? await this.#tools.queueReader.queue(resource, deadline) : seen;
    return Promise.all(
      refs.map((_, i) =>
        this.#answerFor(queue, found(answer, i + 2)[0], deadline).catch(failedRequest),
      ),
    );
  }

  /**
   * Waiters far behind need not read the queue each time: the keys that they wait for are read
   * instead. Null where one of those keys has ended or was let in, or where the queue was not read
   * for long.
   */
  async #farBehind(
    known: readonly WaitingClaim[],
    deadline: number,
  ): Promise<(QueueAnswer | Failed)[] | null> {
    const at = systemClock.now();
    const isFar = (one: WaitingClaim) => isFarBehind(one, at) && one.interests.length > 0;
    if (!known.every(isFar)) return null;
    const holders = known[0]!.holders.slice(0, MOST_HOLDERS);
    const all = known.flatMap(({ self, interests }) => [self, ...interests]);
    const keys = [...new Set([...all, ...holders].map(({ key }) => key))];
    if (keys.length > MOST_KEYS) return null;
    const txn = { compare: [], success: keys.map(get), failure: [] };
    const options = { deadline, repeatable: true, urgent: true };
    const answer = await this.#tools.client.txn(txn, options);
    const now = new Map(keys.map((key, i) => [key, found(answer, i)[0]]));
    const isThere = ({ key, created }: Predecessor) => now.get(key)?.created === created;
    const still = holders.filter(isThere);
    if (still.length === 0 || !known.every((one) => waitsStill(one, now))) return null;
    return Promise.all(
      known.map((one) => this.#waitsAsBefore(one, now.get(one.self.key)!, still, deadline)),
    );
  }

  async #waitsAsBefore(
    { lastBefore, readAt }: WaitingClaim,
    self: KeyValue,
    holders: readonly QueueMember[],
    deadline: number,
  ): Promise<QueueAnswer | Failed> {
    try {
      const { id } = await this.#keepReady(self, deadline);
      const own = await this.#tools.waiterKeys.moveTo(id, self, deadline);
      const place = { position: null, holders, before: null, lastBefore, readAt };
      return { kind: "waits", self: own, ...place };
    } catch (error) {
      return failedRequest(error);
    }
  }

  async #answerFor(
    queue: Queue,
    self: KeyValue | undefined,
    deadline: number,
  ): Promise<QueueAnswer> {
    const record = self === undefined ? null : readRecord(self);
    if (self === undefined || record === null) return { kind: "gone", why: "unknown" };
    const member = queue.find(self.key);
    if (record.claimed || member?.holds) return this.#tools.turns.markAsHolder(self, deadline);
    if (record.revoked) return { kind: "gone", why: "revoked" };
    const { id } = await this.#keepReady(self, deadline);
    const own = await this.#tools.waiterKeys.moveTo(id, self, deadline);
    const position = member === undefined ? null : queue.waiters.indexOf(member);
    const before = member === undefined ? null : queue.before(self);
    const lastBefore = queue.lastBefore(self);
    return { kind: "waits", self: own, position, holders: queue.holders, before, lastBefore };
  }

  async #keepReady(self: KeyValue, deadline: number): Promise<SharedLease> {
    const record = readRecord(self)!;
    const [waiting] = await Promise.all([
      this.#tools.leasePool.ofWaiter(record.ttlMs, RECENT, deadline),
      this.#tools.leasePool.of(record, READY, deadline),
    ]);
    return waiting;
  }
}

/**
 * Whether this waiter cannot have been let in. An exclusive waiter waits for the member before it.
 * A shared waiter waits for as many members as may hold together, or for one that waits itself.
 */
function waitsStill(
  { self, interests }: WaitingClaim,
  now: ReadonlyMap<string, KeyValue | undefined>,
): boolean {
  const own = now.get(self.key);
  const record = own?.created === self.created ? readRecord(own) : null;
  if (record === null || record.claimed || record.revoked) return false;
  if (!interests.every(({ key, created }) => now.get(key)?.created === created)) return false;
  if (record.mode === "exclusive" || interests.length >= (record.limit ?? Infinity)) return true;
  return interests.some(({ key }) => readRecord(now.get(key)!)?.claimed === false);
}

/** Groups waiters by resource, in batches that fit into one transaction. */
function batches(waiters: readonly GrantRef[]): [resource: string, refs: GrantRef[]][] {
  const open = new Map<string, GrantRef[]>();
  const all: [string, GrantRef[]][] = [];
  for (const ref of waiters) {
    const refs = open.get(ref.resource);
    if (refs !== undefined && refs.length < MOST_GETS) refs.push(ref);
    else {
      const fresh = [ref];
      open.set(ref.resource, fresh);
      all.push([ref.resource, fresh]);
    }
  }
  return all;
}

/** A resource that cannot be read does not fail the others. */
function failed(refs: readonly GrantRef[]): (error: unknown) => Failed[] {
  return (error) => refs.map(() => failedRequest(error));
}
