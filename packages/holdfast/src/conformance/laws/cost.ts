import assert from "node:assert";
import type { Claim } from "../../engine.js";
import { type Client, expectKind } from "../client.js";
import type { Law, LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { outcome, within } from "../timing.js";

const FEW = 50;
const MANY = 2_000;
/** How much more one operation may cost beside many. */
const MOST = 1.5;
/** Caches and garbage collection make a difference of some microseconds in any case. */
const SLACK_US = 40;
/** Averages over this many operations whatever else the server does in between. */
const OPERATIONS = 100;
/** The cheapest round counts: a background task of the server disturbs some of them. */
const ROUNDS = 8;
/** Beside many, one round as cheap as those beside few is enough; a longer disturbance is waited out. */
const MOST_ROUNDS = 24;
const TRIES = 3;
/** When every round costs this many times more than allowed, it is no background task. */
const HOPELESS = 5;
const AT_ONCE = 100;
const BEATS = 250;
const LONG_MS = 120_000;
const LIMIT = 10;
/**
 * A very busy machine can lose a short lease in any engine; a crowd that blocks the engine loses
 * both.
 */
const BYSTANDER_TTLS_MS = [5_000, 25_000];

/** Brings this many onto a resource, and returns a function that keeps them there. */
type Crowd = (client: Client, resource: string, count: number) => Promise<() => Promise<void>>;
type Operation = (client: Client, resource: string) => Promise<void>;

async function inBatches(count: number, work: (i: number) => Promise<unknown>): Promise<void> {
  for (let done = 0; done < count; done += AT_ONCE) {
    const size = Math.min(AT_ONCE, count - done);
    await Promise.all(Array.from({ length: size }, (_, i) => work(done + i)));
  }
}

/**
 * The server's time for one operation, in microseconds. Stops after a round of at most enoughUs.
 */
async function timeOf(
  s: LawContext,
  keep: () => Promise<void>,
  operate: () => Promise<void>,
  rounds: number,
  enoughUs = 0,
): Promise<number> {
  let least = Infinity;
  for (let round = 0; round < rounds && least > enoughUs; round++) {
    await keep();
    const before = await s.harness.serverTimeUs!();
    for (let i = 0; i < OPERATIONS; i++) await operate();
    const tookUs = ((await s.harness.serverTimeUs!()) - before) / OPERATIONS;
    // A process of the server that ended in this round takes its time with it: the round shows nothing.
    if (tookUs >= 0) least = Math.min(least, tookUs);
  }
  return least;
}

/** Other programs can only add to a time, so one good try is proof enough. */
async function compare(
  s: LawContext,
  many: number,
  crowd: Crowd,
  operate: Operation,
): Promise<void> {
  const client = await s.client();
  const figures: string[] = [];
  for (let attempt = 0; attempt < TRIES; attempt++) {
    const [less, more] = await fewAndMany(s, client, many, crowd, operate);
    const mostUs = less * MOST + SLACK_US;
    if (less < Infinity && more <= mostUs) return;
    figures.push(`${less.toFixed(0)} µs beside ${FEW}, ${more.toFixed(0)} µs beside ${many}`);
    if (more > mostUs * HOPELESS) break;
  }
  assert.fail(`one operation took the server ${figures.join("; ")}`);
}

async function fewAndMany(
  s: LawContext,
  client: Client,
  many: number,
  crowd: Crowd,
  operate: Operation,
): Promise<[less: number, more: number]> {
  const timeBeside = async (count: number, rounds: number, enoughUs?: number) => {
    const resource = s.resource();
    const keep = await crowd(client, resource, count);
    return timeOf(s, keep, () => operate(client, resource), rounds, enoughUs);
  };
  // A server becomes faster with use, so the few are measured before and after the many.
  const before = await timeBeside(FEW, ROUNDS / 2);
  const more = await timeBeside(many, MOST_ROUNDS, before * MOST);
  const after = await timeBeside(FEW, ROUNDS / 2);
  return [Math.min(before, after), more];
}

/**
 * Makes many claims of one kind wait behind holders. A waiter that is silent for too long loses its
 * place.
 */
function waiters(terms: Partial<Claim>, holders: number): Crowd {
  return async (client, resource, count) => {
    for (let i = 0; i < holders; i++) await client.take(resource, terms);
    const claims = Array.from({ length: count }, () => client.claim(resource, terms));
    await inBatches(count, (i) => client.enqueue(claims[i]!));
    return async () => {
      for (let i = 0; i < count; i += BEATS) await client.heartbeats(claims.slice(i, i + BEATS));
    };
  };
}

const readers: Crowd = async (client, resource, count) => {
  await inBatches(count, () => client.take(resource, SHARED));
  return async () => {};
};

const joinAndLeave =
  (terms: Partial<Claim>): Operation =>
  async (client, resource) => {
    const claim = client.claim(resource, terms);
    expectKind(await client.enqueue(claim), "queued", "a claim behind others");
    await client.heartbeat(claim);
    await client.release(claim);
  };

const SHARED = { mode: "shared" } as const;
const LIMITED = { mode: "shared", limit: LIMIT } as const;

/**
 * The laws on cost beside `many`: an excuse shows with fewer than MANY that the law cannot be kept.
 */
export function costBeside(many: number): readonly Law[] {
  return [
    law(
      "L23.1",
      "a claim in the queue, its heartbeat and its release cost as much behind many as behind few",
      ["queue", "serverTime"],
      (s) => compare(s, many, waiters({}, 1), joinAndLeave({})),
      LONG_MS,
    ),

    law(
      "L23.2",
      "a claim in the queue at a semaphore costs as much behind many as behind few",
      ["queue", "limits", "serverTime"],
      (s) => compare(s, many, waiters(LIMITED, LIMIT), joinAndLeave(LIMITED)),
      LONG_MS,
    ),

    law(
      "L23.3",
      "a shared grant costs as much beside many holders as beside few",
      ["shared", "serverTime"],
      (s) =>
        compare(s, many, readers, async (client, resource) => {
          const { claim } = await client.take(resource, SHARED);
          await client.renew(claim);
          await client.releaseHeld(claim);
        }),
      LONG_MS,
    ),
  ];
}

export const cost: LawGroup = {
  id: "L23",
  name: "cost",
  text:
    `One operation costs the backend at most ${MOST} times as much beside ${MANY} waiters or holders ` +
    `as beside ${FEW}, and a crowd takes no lease from a bystander.`,
  laws: [
    ...costBeside(MANY),

    law(
      "L23.4",
      "a crowd at a semaphore is served, and a bystander keeps its lease",
      ["limits"],
      async (s) => {
        const [crowded, quiet] = [await s.locks(), await s.locks()];
        const reasons: unknown[] = [];
        for (const ttlMs of BYSTANDER_TTLS_MS) {
          const bystander = await quiet.acquire(s.resource(), { ttlMs: s.ttl(ttlMs) });
          const semaphore = crowded.semaphore(s.resource(), { permits: LIMIT });
          const options = { waitMs: LONG_MS, callTimeoutMs: LONG_MS, ttlMs: s.ttl(30_000) };
          const jobs = Array.from({ length: MANY }, () => semaphore.run(options, async () => {}));
          await within(LONG_MS, Promise.all(jobs), "a crowd at a semaphore");
          const renewed = await outcome(bystander.renew(), LONG_MS);
          if (renewed.is === "value") return;
          reasons.push(bystander.signal.reason);
        }
        assert.fail(`a bystander lost its lease: ${reasons.join("; ")}`);
      },
      2 * LONG_MS,
    ),
  ],
};
