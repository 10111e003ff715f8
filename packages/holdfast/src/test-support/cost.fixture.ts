import assert from "node:assert/strict";
import { test } from "node:test";
import { mintGrantId } from "../core/holding/grant-id.js";
import type { Claim, Engine, ListPage } from "../engine.js";
import { now } from "./call.fixture.js";

const FEW = 250;
const MANY = 4_000;
// From 250 to 4,000, a cost of log n grows by a half, and a cost of n grows 16 times.
const MOST_GROWTH = 4;
const TRIES = 3;
const TIMES = 200;
const MOST_PAGES = 1_000_000;
const NAMES = 100_000;
const MOST_PAGE_MS = 20;
const MOST_BYTES = 64 * 2 ** 20;

interface Operation {
  readonly title: string;
  /** How many others there are during the measurement, and of which kind. */
  readonly crowd: (engine: Engine, resource: string, n: number) => Promise<Claim[]>;
  readonly run: (engine: Engine, crowd: readonly Claim[], i: number) => Promise<unknown>;
}

const AMONG_WAITERS: readonly Operation[] = [
  {
    title: "joining and leaving the queue costs the same behind many waiters as behind few",
    crowd: withWaiters,
    run: async (engine, [one]) => {
      const claim = sharedClaim(one!.resource);
      await engine.queue!.enqueue(claim, now());
      await engine.queue!.withdraw(claim, now());
    },
  },
  {
    title: "a heartbeat costs the same among many waiters as among few",
    crowd: withWaiters,
    run: (engine, waiters, i) =>
      engine.queue!.heartbeat([waiters[(i * 7) % waiters.length]!], now()),
  },
  {
    title: "a claim that does not wait costs the same with many waiters as with few",
    crowd: withWaiters,
    run: (engine, [one]) => engine.tryAcquire(sharedClaim(one!.resource), now()),
  },
];

const AMONG_HOLDERS: readonly Operation[] = [
  {
    title: "acquire, renew, check and release cost the same among many holders as among few",
    crowd: withHolders,
    run: async (engine, [one]) => {
      const { resource } = one!;
      const claim = sharedClaim(resource, null);
      const granted = await engine.tryAcquire(claim, now());
      assert.equal(granted.kind, "granted");
      const { token } = granted as { token: bigint };
      await engine.renew([{ ...claim, ttlMs: claim.ttlMs }], now());
      assert.equal(await engine.check({ resource, mode: "shared", token }, now()), true);
      await engine.release([{ ...claim, tombstoneMs: 0 }], now());
    },
  },
];

type Open = () => Engine | Promise<Engine>;

export function checkCostAmongWaiters(open: Open): void {
  check(open, AMONG_WAITERS);
}

export function checkCostAmongHolders(open: Open): void {
  check(open, AMONG_HOLDERS);
}

/** One test for each operation, each on its own engine. */
function check(open: Open, operations: readonly Operation[]): void {
  for (const { title, crowd, run } of operations) {
    test(title, async () => {
      const engine = await open();
      const few = await crowd(engine, "few", FEW);
      const many = await crowd(engine, "many", MANY);
      const cost = (isMany: boolean) =>
        cpuOfEach(TIMES, (i) => run(engine, isMany ? many : few, i));
      await cost(true);
      await assertGrowth(cost);
      await engine.close();
    });
  }
}

export function checkCostOfListing(open: Open): void {
  test("a listing costs the same per name for many names as for few", async () => {
    const [few, many] = [await open(), await open()];
    await hold(few, FEW);
    await hold(many, MANY);
    await list(few);
    await assertGrowth(async (isMany) => {
      const n = isMany ? MANY : FEW;
      return (await cpuOfEach(1, async () => assert.equal(await list(isMany ? many : few), n))) / n;
    });
    await few.close();
    await many.close();
  });
}

async function hold(engine: Engine, names: number): Promise<void> {
  for (let i = 0; i < names; i++) await engine.tryAcquire(sharedClaim(`name ${i}`), now());
}

/** Lists a hundred thousand names: each once, in little memory, and no page takes long. */
export async function checkLongListing(engine: Engine): Promise<void> {
  await hold(engine, NAMES);
  const pagesMs: number[] = [];
  const before = process.memoryUsage().heapUsed;
  let most = 0;
  let last = process.cpuUsage();
  const names = await list(engine, () => {
    const { user, system } = process.cpuUsage(last);
    pagesMs.push((user + system) / 1_000);
    most = Math.max(most, process.memoryUsage().heapUsed - before);
    last = process.cpuUsage();
  });
  assert.equal(names, NAMES);
  // A garbage collection may run during a page.
  const usualMs = pagesMs.sort((a, b) => a - b)[Math.floor(pagesMs.length * 0.99)]!;
  assert.ok(usualMs <= MOST_PAGE_MS, `1 % of the pages take ${usualMs} ms or more`);
  assert.ok(most <= MOST_BYTES, `the heap grows by ${most} bytes`);
  await engine.close();
}

/** How many names it lists. */
async function list(engine: Engine, onPage = () => {}): Promise<number> {
  const names = new Set<string>();
  for (let cursor: string | null = null, pages = 0; pages < MOST_PAGES; pages++) {
    const page: ListPage = await engine.list({ match: "*", cursor, max: 64 }, now());
    onPage();
    for (const { resource } of page.views) names.add(resource);
    cursor = page.cursor;
    if (cursor === null) return names.size;
  }
  assert.fail("the listing does not end");
}

/**
 * Compares CPU times, because other programs use the machine too. Takes the best of several,
 * because a garbage collection may run during one.
 */
async function assertGrowth(cost: (many: boolean) => Promise<number>): Promise<void> {
  const growths: string[] = [];
  for (let i = 0; i < TRIES; i++) {
    const few = await cost(false);
    const many = await cost(true);
    if (many <= few * MOST_GROWTH) return;
    growths.push(`${many.toFixed(1)} µs against ${few.toFixed(1)} µs`);
  }
  assert.fail(`among ${MANY} and among ${FEW} it takes each ${growths.join(", ")}`);
}

/** In microseconds. */
async function cpuOfEach(times: number, work: (i: number) => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) await work(i);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / times;
}

function sharedClaim(resource: string, limit: number | null = 1): Claim {
  const terms = { mode: "shared", limit, ttlMs: 3_600_000, lockDelayMs: 0 } as const;
  return { resource, grantId: mintGrantId(), ...terms, tokens: 1, label: "one of many" };
}

async function withWaiters(engine: Engine, resource: string, n: number): Promise<Claim[]> {
  await engine.tryAcquire(sharedClaim(resource), now());
  const waiters = Array.from({ length: n }, () => sharedClaim(resource));
  for (const waiter of waiters) await engine.queue!.enqueue(waiter, now());
  return waiters;
}

async function withHolders(engine: Engine, resource: string, n: number): Promise<Claim[]> {
  const holders = Array.from({ length: n }, () => sharedClaim(resource, null));
  for (const holder of holders) await engine.tryAcquire(holder, now());
  return holders;
}
