// What operations read, by the server's own count. It depends neither on how often the tables were
// used, nor on how many grants they hold, nor on the planner's statistics.
import assert from "node:assert/strict";
import type pg from "pg";
import { init, inSchema } from "../../schema.js";
import {
  advisoryCycle,
  blocksOf,
  blocksOfCycle,
  cycle,
  everything,
  plant,
  type Statement,
  SWEEP,
  scansOf,
} from "../support/cost.fixture.js";
import { describeWithPostgres, type PostgresTestServer } from "../support/test-server.fixture.js";

const CYCLES = 1_500;
const PLANTED = 5_000;
// PostgreSQL keeps plans from the sixth execution on.
const TIMES = 7;
// One more level of each index, and a page here and there.
const SLACK = 15;
// How many resources a sweep looks at, at most, and how many blocks it may touch for each.
const BATCH = 50;
const BLOCKS_EACH = 40;

// Only what a test does itself may help the planner or vacuum the tables.
describeWithPostgres({ settings: ["autovacuum=off"] }, (it) => {
  it("a cycle reads no more after many cycles, in tables never analysed", async (server) => {
    const client = await server.client();
    const first = await blocksOfCycle(client, () => cycle("worn"));
    for (let i = 0; i < CYCLES; i++) await all(cycle("worn"), client);
    const worn = await blocksOfCycle(client, () => cycle("worn"));
    assert.ok(worn <= first + SLACK, `${first} blocks at first, ${worn} after ${CYCLES} cycles`);
    const planned = await blocksOfCycle(await server.client(), () => cycle("worn"));
    assert.ok(planned <= first + SLACK, `${first} blocks at first, ${planned} with newer plans`);
  });

  it("a cycle of session locks reads no more after many cycles", async (server) => {
    const client = await server.client();
    const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
    const next = () => advisoryCycle("worn", rows[0].pid);
    const first = await blocksOfCycle(client, next);
    for (let i = 0; i < CYCLES; i++) await all(next(), client);
    const worn = await blocksOfCycle(client, next);
    assert.ok(worn <= first + SLACK, `${first} blocks at first, ${worn} after ${CYCLES} cycles`);
  });

  it("plans made for empty tables scan no full table later", async (server) => {
    const client = await server.client();
    await clear(server);
    const empty = await blocksOfCycle(client, () => cycle("sudden"));
    for (let i = 0; i < TIMES; i++) await all(everything("sudden"), client);
    await plant(client, PLANTED);
    assert.deepEqual(await scansOf(client, [...everything("sudden"), SWEEP]), {});
    const full = await blocksOfCycle(client, () => cycle("sudden"));
    assert.ok(full <= empty + SLACK, `${empty} blocks when empty, ${full} when full`);
  });

  it("ShedLock's table is read by its index", async (server) => {
    const client = await server.client();
    await init(server.admin, { shedlock: "shedlock" });
    const statements = () =>
      everything("shed")
        // ShedLock's schema refuses both.
        .filter(([text]) => !/\.(fence|claim_here)\(/.test(text))
        .map(([text, values]): Statement => [inSchema(text, "holdfast_shedlock"), values]);
    for (let i = 0; i < TIMES; i++) await all(statements(), client);
    assert.deepEqual(await scansOf(client, statements()), {});
  });

  it("every routine that is called from outside has its own planner settings", async (server) => {
    const { rows } = await server.admin.query(
      "SELECT proname AS name, proconfig AS settings FROM pg_proc WHERE prosecdef",
    );
    assert.ok(rows.length > 10, `${rows.length} routines`);
    const own = ["enable_seqscan=off", "enable_bitmapscan=off", "jit=off"];
    for (const { name, settings } of rows) {
      assert.deepEqual(
        own.filter((setting) => settings.includes(setting)),
        own,
        name,
      );
    }
  });

  it("a sweep among living grants reads as much as it frees", async (server) => {
    const client = await server.client();
    await clear(server);
    await plant(client, PLANTED);
    // Measured from the second time on: the first time reads the catalogue.
    const blocks: number[] = [];
    for (let i = 1; i <= TIMES; i++) {
      const nothing = await blocksOf(client, SWEEP);
      await expire(client, PLANTED - i);
      blocks.push(nothing, await blocksOf(client, SWEEP));
      assert.equal(await grants(server), PLANTED - i);
    }
    const [nothing, one] = blocks.slice(-2) as [number, number];
    assert.ok(nothing <= SLACK, `${nothing} blocks to find nothing`);
    assert.ok(one <= SLACK + BLOCKS_EACH, `${one} blocks to free one`);
  });

  it("a sweep postpones living resources, a batch at a time, and makes progress", async (server) => {
    const client = await server.client();
    await clear(server);
    await plant(client, PLANTED);
    // The last of many resources that are due.
    await client.query("UPDATE holdfast.resources SET due_at = now() - interval '2 hours'");
    await expire(client, PLANTED);
    for (let looked = BATCH; looked <= PLANTED; looked += BATCH) {
      assert.equal(await grants(server), PLANTED);
      const some = await blocksOf(client, SWEEP);
      assert.ok(some <= BATCH * BLOCKS_EACH, `${some} blocks for a batch`);
    }
    assert.equal(await grants(server), PLANTED - 1, "only what is over went away");
    const nothing = await blocksOf(client, SWEEP);
    assert.ok(nothing <= SLACK, `${nothing} blocks when all are put off`);
  });
});

async function all(statements: readonly Statement[], client: pg.Client): Promise<void> {
  for (const statement of statements) await client.query(...statement);
}

/** Makes the grant look as if it was given an hour ago and never renewed. */
async function expire(client: pg.Client, n: number): Promise<void> {
  const ago = "now() - interval '1 hour'";
  await client.query(`
    UPDATE holdfast.grants SET expires_at = ${ago} WHERE resource = 'planted-${n}';
    UPDATE holdfast.resources SET due_at = ${ago} WHERE name = 'planted-${n}'`);
}

/** Empties the tables, and lets the planner know it. */
async function clear({ admin }: PostgresTestServer): Promise<void> {
  const tables = ["resources", "grants", "waiters", "tombstones"].map((name) => `holdfast.${name}`);
  await admin.query(`TRUNCATE ${tables}`);
  await admin.query(`VACUUM ANALYZE ${tables}`);
}

async function grants({ admin }: PostgresTestServer): Promise<number> {
  return (await admin.query("SELECT count(*)::int AS n FROM holdfast.grants")).rows[0].n;
}
