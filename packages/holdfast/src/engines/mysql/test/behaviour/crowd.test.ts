// What one operation reads beside 50 and beside 2,000 waiters or holders of the same resource, by the
// server's own count of rows and keys.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import type mysql from "mysql2/promise";
import { mintGrantId } from "../../../../core/holding/grant-id.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { describeWithMysql, type MysqlTestServer } from "../support/test-server.fixture.js";

const [FEW, MANY] = [50, 2_000];
// The fifty waiters nearest to the head are counted, so the number of reads depends on the
// position.
const SLACK = 60;
const SAMPLES = 5;
const NOW = "holdfast_now_us(UTC_TIMESTAMP(6))";
const DAY = `${NOW} + 86400000000`;

type Work = () => Promise<unknown>;

describeWithMysql({}, (it) => {
  it("an operation reads as much beside 50 readers as beside 2,000", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    const engine = server.engine({ client });
    for (const limit of [null, 10_000]) {
      const rows = async (n: number) => {
        const resource = `readers-${limit}-${n}`;
        const ids = await plantReaders(server, resource, n, limit ?? 0);
        const grant = (i: number) => ({ resource, grantId: ids[i]! });
        const token = 1024n * BigInt(1 + (n >> 1));
        const reader = () => claim(resource, { mode: "shared", limit });
        const writer = claim(resource);
        const sequence = { resource, mode: "shared", token } as const;
        // An operation just before counts the holders for the next second. The update extends that
        // second.
        await engine.tryAcquire(claim(resource), now());
        await server.admin.query(`UPDATE holdfast_resources SET counted_us = ${DAY}`);
        let i = 3;
        return read(client, {
          "a reader's claim": () => engine.tryAcquire(reader(), now()),
          "a writer's claim": () => engine.tryAcquire(writer, now()),
          "a claim with another limit": () =>
            engine.tryAcquire({ ...reader(), limit: 7 }, now()).catch(() => {}),
          release: () => engine.release([{ ...grant(i++), tombstoneMs: 0 }], now()),
          "a late release": () => engine.release([{ ...claim(resource), tombstoneMs: 0 }], now()),
          renewal: () => engine.renew([{ ...grant(40), ttlMs: 90_000_000 }], now()),
          "a late renewal": () => engine.renew([claim(resource)], now()),
          check: () => engine.check(sequence, now()),
          revocation: () => engine.revoke({ ...sequence, force: false }, now()),
          "a writer's place": () => engine.queue!.enqueue(writer, now()),
          "a writer's heartbeat": () => engine.queue!.heartbeat([writer], now()),
        });
      };
      compare(await rows(FEW), await rows(MANY));
    }
  });

  it("an operation reads as much among 50 waiters as among 2,000", async (server) => {
    const client = server.pool({ connectionLimit: 1 });
    const engine = server.engine({ client });
    for (const mode of ["exclusive", "shared"] as const) {
      const rows = async (n: number) => {
        const resource = `waiters-${mode}-${n}`;
        const held = claim(resource, { ttlMs: 3_600_000 });
        await engine.tryAcquire(held, now());
        const ids = await plantWaiters(server, resource, n, mode === "shared" ? 1 : 0);
        const waiter = (i: number) => ({ resource, grantId: ids[i]! });
        let i = n >> 1;
        return read(client, {
          "a claim": () => engine.tryAcquire(claim(resource, { mode }), now()),
          "a place": () => engine.queue!.enqueue(claim(resource, { mode }), now()),
          "the head's heartbeat": () => engine.queue!.heartbeat([waiter(0)], now()),
          "the last one's heartbeat": () => engine.queue!.heartbeat([waiter(n - 1)], now()),
          withdrawal: () => engine.queue!.withdraw(waiter(i++), now()),
        });
      };
      compare(await rows(FEW), await rows(MANY));
    }
  });

  it("the stored number of holders equals the number of rows", async (server) => {
    const engine = server.engine();
    const limit = 24;
    const held: ReturnType<typeof claim>[] = [];
    for (let i = 0; i < 300; i++) {
      // Around the number at which holders are no longer counted each time, and up to the limit.
      if (held.length > 0 && randomInt(100) < (i % 100 < 50 ? 35 : 65)) {
        const [one] = held.splice(randomInt(held.length), 1);
        await engine.release([{ ...one!, tombstoneMs: 0 }], now());
      } else {
        const ttlMs = randomInt(10) ? 60_000 : 200;
        const one = claim("counted", { mode: "shared", limit, ttlMs });
        const { kind } = await engine.tryAcquire(one, now());
        if (kind === "granted") held.push(one);
        else assert.ok(held.length >= limit, `${kind} with ${held.length} of ${limit}`);
      }
      const [rows] = await server.admin.query(`SELECT r.held,
          (SELECT COUNT(*) FROM holdfast_grants g WHERE g.resource = r.name) AS present,
          (SELECT COUNT(*) FROM holdfast_fences f WHERE f.resource = r.name) AS fences
        FROM holdfast_resources r WHERE r.name = 'counted'`);
      const [row] = rows as { held: number; present: number; fences: number }[];
      assert.deepEqual([row!.held, row!.fences], [row!.present, row!.present], `after ${i}`);
      assert.ok(row!.present <= limit, `${row!.present} hold ${limit} permits`);
    }
  });
});

function compare(few: Record<string, number>, many: Record<string, number>): void {
  for (const [what, rows] of Object.entries(many)) {
    const text = `${what}: ${few[what]} reads beside ${FEW}, ${rows} beside ${MANY}`;
    assert.ok(rows <= 1.5 * few[what]! + SLACK, text);
  }
}

/** The median of a few, by the only session of this pool, because some calls sweep. */
async function read(client: mysql.Pool, works: Record<string, Work>) {
  const count = async () => {
    const [rows] = await client.query("SHOW SESSION STATUS LIKE 'Handler_read%'");
    return (rows as { Value: string }[]).reduce((sum, { Value }) => sum + Number(Value), 0);
  };
  const looking = -(await count()) + (await count());
  const medians: Record<string, number> = {};
  for (const [what, work] of Object.entries(works)) {
    const samples: number[] = [];
    for (let i = 0; i < SAMPLES; i++) {
      const before = await count();
      await work();
      samples.push((await count()) - before - looking);
    }
    medians[what] = samples.sort((a, b) => a - b)[SAMPLES >> 1]!;
  }
  return medians;
}

async function plantReaders({ admin }: MysqlTestServer, name: string, n: number, limit: number) {
  const ids = Array.from({ length: n }, () => mintGrantId());
  await admin.query(
    `INSERT INTO holdfast_resources (name, last_token, used_us, held) VALUES (?, ?, ${NOW}, ?)`,
    [name, 1024 * n, n],
  );
  const rows = ids.map(
    (id, i) => `(X'${id}', '${name}', 1, ${limit}, ${1024 * (i + 1)}, 1, 1000, 0,
    ${DAY}, '')`,
  );
  await admin.query(`INSERT INTO holdfast_grants (grant_id, resource, shared, limit_to, token, tokens,
      ttl_ms, delay_ms, expires_us, label) VALUES ${rows}`);
  await admin.query(`INSERT INTO holdfast_fences (resource, token, tokens, shared)
    SELECT resource, token, tokens, shared FROM holdfast_grants WHERE resource = '${name}'`);
  return ids;
}

async function plantWaiters({ admin }: MysqlTestServer, name: string, n: number, shared: number) {
  const ids = Array.from({ length: n }, () => mintGrantId());
  const rows = ids.map(
    (id, i) => `(X'${id}', '${name}', ${shared}, 0, 1, 1000, 0, ${NOW}, ${DAY},
    X'0000000000000000', '', ${i})`,
  );
  await admin.query(`INSERT INTO holdfast_waiters (grant_id, resource, shared, limit_to, tokens, ttl_ms,
      delay_ms, joined_us, heard_us, owner, label, nth) VALUES ${rows}`);
  return ids;
}
