// What operations read, by the server's own count of rows and keys. It depends neither on how often
// the tables were used, nor on how many grants they hold.
import assert from "node:assert/strict";
import type mysql from "mysql2/promise";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import {
  describeWithMysql,
  type MysqlTestServer,
  numbers,
} from "../support/test-server.fixture.js";

const CYCLES = 500;
const PLANTED = 5_000;
// In an empty table some reads are of rows and some of keys.
const SLACK = 10;
const SAMPLES = 9;
// How many resources a sweep looks at, at most, and what it may read for each.
const BATCH = 20;
const READS_EACH = 20;

describeWithMysql({}, (it) => {
  it("a cycle reads no more after many cycles, nor among many grants", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    const engine = server.engine({ client });
    const cycle = async () => {
      const asked = claim("worn");
      await engine.tryAcquire(asked, now());
      await engine.release([{ ...asked, tombstoneMs: 0 }], now());
    };
    const first = await usualReads(client, cycle);
    for (let i = 0; i < CYCLES; i++) await cycle();
    const worn = await usualReads(client, cycle);
    assert.ok(worn <= first + SLACK, `${first} reads at first, ${worn} after ${CYCLES} cycles`);
    await plant(server);
    const full = await usualReads(client, cycle);
    assert.ok(full <= first + SLACK, `${first} reads at first, ${full} among ${PLANTED} grants`);
  });

  it("a sweep among living grants reads a batch at most", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    const sweep = () =>
      client.query(`CALL holdfast_sweep(holdfast_now_us(UTC_TIMESTAMP(6)), 60000, ${BATCH})`);
    await plant(server);
    await sweep();
    const nothing = await reads(client, sweep);
    assert.ok(nothing <= SLACK, `${nothing} reads to find nothing`);
    await server.admin.query("UPDATE holdfast_resources SET used_us = used_us - 3600000000");
    await server.admin.query("UPDATE holdfast_grants SET expires_us = 1 WHERE token = 1");
    for (let looked = 0; (await server.count("grants", "token = 1")) > 0; looked += BATCH) {
      assert.ok(looked <= PLANTED, "a sweep does not get on");
      const some = await reads(client, sweep);
      assert.ok(some <= SLACK + BATCH * READS_EACH, `${some} reads for a batch`);
    }
    assert.equal(await server.count("grants"), PLANTED - 1, "only what is over went away");
  });
});

/** Counts reads of rows and keys by the only session of this pool. */
async function reads(client: mysql.Pool, act: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    const [rows] = await client.query("SHOW SESSION STATUS LIKE 'Handler_read%'");
    return (rows as { Value: string }[]).reduce((sum, { Value }) => sum + Number(Value), 0);
  };
  // Counting reads rows too, and always the same number.
  const before = await count();
  const looking = (await count()) - before;
  const from = await count();
  await act();
  return (await count()) - from - looking;
}

/** The median of a few, because some calls sweep. */
async function usualReads(client: mysql.Pool, act: () => Promise<unknown>): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < SAMPLES; i++) samples.push(await reads(client, act));
  return samples.sort((a, b) => a - b)[(SAMPLES - 1) / 2]!;
}

/** Creates resources with a grant that lives for a day, and nothing else. */
async function plant({ admin }: MysqlTestServer): Promise<void> {
  await admin.query(`
    DELETE FROM holdfast_grants; DELETE FROM holdfast_fences; DELETE FROM holdfast_resources;
    INSERT INTO holdfast_resources (name, last_token, used_us)
      SELECT CONCAT('planted-', seq), seq, holdfast_now_us(UTC_TIMESTAMP(6)) FROM ${numbers(PLANTED)};
    INSERT INTO holdfast_grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms,
        expires_us, label)
      SELECT UNHEX(LEFT(SHA2(seq, 256), 32)), CONCAT('planted-', seq), 0, 0, seq, 1, 1000, 0,
        holdfast_now_us(UTC_TIMESTAMP(6)) + 86400000000, '' FROM ${numbers(PLANTED)};
    INSERT INTO holdfast_fences (resource, token, tokens, shared)
      SELECT resource, token, tokens, shared FROM holdfast_grants`);
}
