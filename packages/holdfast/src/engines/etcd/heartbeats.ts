import type { Failed, GrantRef } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { Claims, Verdict } from "./claims.js";
import type { EtcdClient } from "./client.js";
import type { Holdings } from "./holdings.js";
import { type Keys, markersIn } from "./keys.js";
import type { SharedLease } from "./leases.js";
import { Line, readEntry } from "./line.js";
import type { Lives } from "./lives.js";
import type { Readings } from "./readings.js";
import { countOf, found, get, type KeyValue, range } from "./requests.js";

const MOST_GETS = 100;
/** So many at the head of a line are seen at once; those behind them are far from their turn. */
const FIRST = 64;
/** Waiters' leases are kept alive with each heartbeat. */
const RECENT = 0.2;
/** What a waiter will hang on once it holds is kept ready. */
const READY = 0.3;

/** Looks after the waiters of one process: one reading for all that wait for the same resource. */
export class Heartbeats {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #lives: Lives;
  readonly #readings: Readings;
  readonly #claims: Claims;
  readonly #holdings: Holdings;

  constructor(
    client: EtcdClient,
    keys: Keys,
    lives: Lives,
    readings: Readings,
    claims: Claims,
    holdings: Holdings,
  ) {
    this.#client = client;
    this.#keys = keys;
    this.#lives = lives;
    this.#readings = readings;
    this.#claims = claims;
    this.#holdings = holdings;
  }

  /** In the order asked. Each room is answered as soon as it was read: another one may take long. */
  async beat<T>(
    waiters: readonly GrantRef[],
    deadline: number,
    answer: (ref: GrantRef, verdict: Verdict | Failed) => Promise<T>,
  ): Promise<T[]> {
    const answers = new Map<GrantRef, T>();
    const works = batches(waiters).map(async ([resource, refs]) => {
      const verdicts = await this.#inRoom(resource, refs, deadline).catch(failed(refs));
      const answered = refs.map(async (ref, i) =>
        answers.set(ref, await answer(ref, verdicts[i]!)),
      );
      await Promise.all(answered);
    });
    await Promise.all(works);
    return waiters.map((ref) => answers.get(ref)!);
  }

  async #inRoom(
    resource: string,
    refs: readonly GrantRef[],
    deadline: number,
  ): Promise<(Verdict | Failed)[]> {
    const known = refs.flatMap((ref) => this.#holdings.waiter(ref) ?? []);
    await Promise.all(known.map(({ self }) => this.#keepReady(self, deadline)));
    const room = this.#keys.room(resource);
    const exclusive = known.every(({ self }) => readEntry(self)?.mode === "exclusive");
    const whole = known.length < refs.length || !exclusive;
    const answer = await this.#client.txn(
      {
        compare: [],
        success: [
          range(room, { order: "ASCEND", ...(whole ? {} : { limit: FIRST }) }),
          range(markersIn(room)),
          ...refs.map((ref) => get(this.#keys.entry(resource, ref.grantId))),
        ],
        failure: [],
      },
      { deadline, repeatable: true, urgent: true },
    );
    const first = found(answer, 0);
    const seen = new Line([...first, ...found(answer, 1)]);
    const complete = first.length === countOf(answer, 0);
    // A mark whose grant is not among the first need not be an orphan.
    const unclear = !complete && seen.orphans.length > 0;
    const line = unclear ? await this.#readings.line(resource, deadline) : seen;
    return Promise.all(
      refs.map((_, i) => this.#one(line, found(answer, i + 2)[0], deadline).catch(failedOne)),
    );
  }

  async #one(line: Line, self: KeyValue | undefined, deadline: number): Promise<Verdict> {
    const entry = self === undefined ? null : readEntry(self);
    if (self === undefined || entry === null) return { kind: "gone", why: "unknown" };
    const member = line.find(self.key);
    if (entry.claimed || member?.holds) return this.#claims.tell(self, deadline);
    if (entry.revoked) return { kind: "gone", why: "revoked" };
    const { id } = await this.#keepReady(self, deadline);
    const own = await this.#claims.hang(self, id, deadline);
    const position = member === undefined ? null : line.waiters.indexOf(member);
    const before = member === undefined ? null : line.before(self);
    const lastBefore = line.lastBefore(self);
    return { kind: "waits", self: own, position, holders: line.holders, before, lastBefore };
  }

  async #keepReady(self: KeyValue, deadline: number): Promise<SharedLease> {
    const entry = readEntry(self)!;
    const [waiting] = await Promise.all([
      this.#lives.ofWaiter(entry.ttlMs, RECENT, deadline),
      this.#lives.of(entry, READY, deadline),
    ]);
    return waiting;
  }
}

/** Waiters for one resource together, as many as a transaction can hold. */
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

/** One room that cannot be read does not decide for the others. */
function failed(refs: readonly GrantRef[]): (error: unknown) => Failed[] {
  return (error) => refs.map(() => failedOne(error));
}

function failedOne(error: unknown): Failed {
  if (!(error instanceof EngineError)) throw error;
  return { kind: "failed", effect: error.effect, error };
}
