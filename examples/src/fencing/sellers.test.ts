// A stock of 1, two processes, the lock on Redis and the data in PostgreSQL. ada reads and is stopped
// past her ttl. ben is granted the lock and reads. ada wakes up and writes, then ben writes.
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { on } from "node:events";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
} from "@holdfast/servers";
import pg from "pg";
import { TABLE } from "./postgres.js";
import { type RECIPES, TABLES } from "./recipes.js";
import type { Told } from "./seller.js";

const SELLER = fileURLToPath(new URL("seller.js", import.meta.url));
const TTL_MS = 1_000;
const NO_LIMIT_MS = 0;
const LIMIT = { timeout: 180_000 };

let redis: RedisServer;
let postgres: PostgresServer;
let client: pg.Client;
const running = new Set<Seller>();

before(async () => {
  [redis, postgres] = await Promise.all([startRedis(), startPostgres()]);
  client = new pg.Client(postgres.url);
  await client.connect();
  await client.query(`${TABLE};${TABLES}`);
});
afterEach(() => {
  // A stopped process handles no other signal.
  for (const seller of running) seller.process.kill("SIGKILL");
  running.clear();
});
after(async () => {
  await client.end();
  await Promise.all([redis.stop(), postgres.stop()]);
});

class Seller {
  readonly process: ChildProcess;
  readonly #told: AsyncIterator<[Told]>;

  constructor(recipe: keyof typeof RECIPES, item: string, buyer: string, idleMs: number) {
    const args = [recipe, redis.url, postgres.url, item, buyer, String(TTL_MS), String(idleMs)];
    // No pipe of the test runner's, which would wait for a stopped process to close it.
    this.process = fork(SELLER, args, { stdio: ["ignore", "ignore", "pipe", "ipc"] });
    this.process.stderr?.pipe(process.stderr, { end: false });
    this.#told = on(this.process, "message", { close: ["exit"] }) as AsyncIterator<[Told]>;
    running.add(this);
  }

  async tells(): Promise<Told> {
    const { done, value } = await this.#told.next();
    assert.ok(!done, "the seller ended without a word");
    return value[0];
  }

  async goesOn(): Promise<Told> {
    this.process.send("go on");
    return this.tells();
  }
}

async function put(item: string): Promise<void> {
  await client.query("INSERT INTO stock (item, units) VALUES ($1, 1)", [item]);
}

async function buyers(item: string): Promise<string[]> {
  const { rows } = await client.query("SELECT buyer FROM sales WHERE item = $1", [item]);
  return rows.map(({ buyer }) => buyer);
}

async function play(recipe: keyof typeof RECIPES) {
  await put(recipe);
  const ada = new Seller(recipe, recipe, "ada", NO_LIMIT_MS);
  const first = await ada.tells();
  ada.process.kill("SIGSTOP");
  const ben = new Seller(recipe, recipe, "ben", NO_LIMIT_MS);
  const second = await ben.tells();
  assert.deepEqual([first.units, second.units], [1, 1]);
  assert.ok(BigInt(second.token) > BigInt(first.token));
  ada.process.kill("SIGCONT");
  const late = await ada.goesOn();
  assert.equal(late.held, false, "ada could have known");
  const { outcome } = await ben.goesOn();
  return { ada: late.outcome, ben: outcome, sold: await buyers(recipe) };
}

const BOTH_SOLD = { ada: "sold", ben: "sold", sold: ["ada", "ben"] };
const ONE_SOLD = { ada: "FencedOutError", ben: "sold", sold: ["ben"] };

test("without a check, 2 of 1 are sold", LIMIT, async () => {
  assert.deepEqual(await play("noCheck"), BOTH_SOLD);
});

test("with a check at the write alone, 2 of 1 are sold", LIMIT, async () => {
  assert.deepEqual(await play("checkAtTheWrite"), BOTH_SOLD);
});

test("registered at the write, 2 of 1 are sold", LIMIT, async () => {
  assert.deepEqual(await play("registerAtTheWrite"), BOTH_SOLD);
});

test(
  "registered before the read and checked with the write, 1 of 1 is sold, and the stale holder is refused",
  LIMIT,
  async () => {
    assert.deepEqual(await play("registerBeforeTheRead"), ONE_SOLD);
  },
);

/** ada is stopped between her check and her commit; the server ends her session after idleMs. */
async function stopInTransaction(item: string, idleMs: number) {
  await put(item);
  const ada = new Seller("pauseInTheTransaction", item, "ada", idleMs);
  assert.equal((await ada.tells()).units, 1);
  ada.process.kill("SIGSTOP");
  return { ada, ben: new Seller("pauseInTheTransaction", item, "ben", NO_LIMIT_MS) };
}

test(
  "a holder stopped inside its transaction blocks its successor, and sells when it wakes",
  LIMIT,
  async () => {
    const { ada, ben } = await stopInTransaction("woken", NO_LIMIT_MS);
    const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while ((await client.query(waiting)).rowCount === 0) await sleep(10);
    ada.process.kill("SIGCONT");
    assert.equal((await ada.goesOn()).outcome, "sold");
    assert.equal((await ben.tells()).units, 0);
    assert.equal((await ben.goesOn()).outcome, "sold out");
    assert.deepEqual(await buyers("woken"), ["ada"]);
  },
);

test(
  "a holder stopped inside its transaction sells nothing once the server has ended its session",
  LIMIT,
  async () => {
    const { ada, ben } = await stopInTransaction("ended", 2 * TTL_MS);
    assert.equal((await ben.tells()).units, 1);
    ada.process.kill("SIGCONT");
    assert.match((await ada.goesOn()).outcome ?? "", /connection|terminat/);
    assert.equal((await ben.goesOn()).outcome, "sold");
    assert.deepEqual(await buyers("ended"), ["ben"]);
  },
);
