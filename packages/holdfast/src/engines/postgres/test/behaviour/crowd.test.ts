// What one operation reads beside 50 and beside 2,000 waiters or holders of the same resource, by the
// server's own count of rows. Each is measured in a transaction that is rolled back.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import type pg from "pg";
import { mintGrantId } from "../../../../core/holding/grant-id.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

const [FEW, MANY] = [50, 2_000];
// The fifty waiters nearest to the head are counted, so the number of reads depends on the
// position.
const SLACK = 60;
const READ =
  "SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0)::int AS n FROM pg_stat_xact_user_tables";

describeWithPostgres({ settings: ["autovacuum=off"] }, (it) => {
  it("an operation reads as much beside 50 readers as beside 2,000", async (server) => {
    const client = await server.client();
    for (const limit of [0, 10_000]) {
      const rows = async (n: number) => {
        const name = `readers-${limit}-${n}`;
        const ids = await plantReaders(client, name, n, limit);
        await settle(client, name, ids[0]!, limit);
        const { rows } = await client.query(
          "SELECT token::text FROM holdfast.grants WHERE grant_id = $1",
          [ids[n >> 1]],
        );
        const token = rows[0].token as string;
        return {
          "a reader's claim": await read(client, run("acquire", name, { shared: true, limit })),
          "a writer's claim": await read(client, run("acquire", name)),
          "a writer's place": await read(client, run("enqueue", name)),
          "a claim with another limit": await read(
            client,
            run("acquire", name, { shared: true, limit: 7 }),
          ),
          release: await read(client, run("release", name, { id: ids[3]! })),
          "a late release": await read(client, run("release", name)),
          renewal: await read(client, [
            "SELECT holdfast.renew($1, $2, '{9000}', '{0}', '{f}', 9, 250)",
            [[name], [ids[4]]],
          ]),
          "a late renewal": await read(client, [
            "SELECT holdfast.renew($1, $2, '{9000}', '{0}', '{f}', 9, 250)",
            [[name], [mintGrantId()]],
          ]),
          check: await read(client, ["SELECT holdfast.check_token($1, true, $2)", [name, token]]),
          fence: await read(client, ["SELECT holdfast.fence($1, true, $2)", [name, token]]),
          revocation: await read(client, run("revoke", name, { token, force: false })),
        };
      };
      compare(await rows(FEW), await rows(MANY));
    }
  });

  it("an operation reads as much among 50 waiters as among 2,000", async (server) => {
    const client = await server.client();
    for (const shared of [false, true]) {
      const rows = async (n: number) => {
        const name = `waiters-${shared}-${n}`;
        const holder = mintGrantId();
        await client.query(...run("acquire", name, { id: holder }));
        const ids = await plantWaiters(client, name, n, shared);
        const beat = (id: string): Statement => [
          "SELECT holdfast.heartbeat($1, $2, '{1}', '', 50, 100)",
          [[name], [id]],
        ];
        return {
          "a claim": await read(client, run("acquire", name, { shared })),
          "a place": await read(client, run("enqueue", name, { shared })),
          "the head's heartbeat": await read(client, beat(ids[0]!)),
          "the last one's heartbeat": await read(client, beat(ids[n - 1]!)),
          "the last one's repeat": await read(client, run("enqueue", name, { id: ids[n - 1]! })),
          withdrawal: await read(client, run("withdraw", name, { id: ids[n >> 1]! })),
          // All readers are let in together.
          ...(shared ? {} : { release: await read(client, run("release", name, { id: holder })) }),
        };
      };
      compare(await rows(FEW), await rows(MANY));
    }
  });

  it("positions in a long queue never rise", async (server) => {
    const [ours, other] = [server.engine(), server.engine()];
    const held = claim("places");
    await other.tryAcquire(held, now());
    const queue = Array.from({ length: 130 }, () => claim("places"));
    for (const [i, waiter] of queue.entries()) {
      const answer = await ours.queue!.enqueue(waiter, now());
      assert.ok(answer.kind === "queued" && answer.position === i, `${i} is ${answer.kind}`);
    }
    // Withdraws from the middle: the last waiter moves up at once near the head, and later further
    // back.
    for (const waiter of queue.slice(10, 110)) await ours.queue!.withdraw(waiter, now());
    const last = queue.at(-1)!;
    let before = 129;
    for (let gone = 0; gone < 10; gone++) {
      const [answer] = await ours.queue!.heartbeat([last], now());
      assert.ok(answer!.kind === "queued");
      assert.ok(answer!.position <= before && answer!.position >= 29 - gone, "it fell behind");
      before = answer!.position;
      await ours.queue!.withdraw(queue[gone]!, now());
    }
    const [near] = await ours.queue!.heartbeat([last], now());
    assert.equal(near!.kind === "queued" && near!.position, 19, "near the head it is exact");
  });

  it("the stored number of holders equals the number of rows", async (server) => {
    const engine = server.engine();
    const limit = 24;
    const held: ReturnType<typeof claim>[] = [];
    for (let i = 0; i < 400; i++) {
      // Around the number at which the count begins to be stored, and up to the limit.
      if (held.length > 0 && randomInt(100) < (i % 100 < 50 ? 35 : 65)) {
        const [one] = held.splice(randomInt(held.length), 1);
        await engine.release([{ ...one!, tombstoneMs: 0 }], now());
      } else {
        const one = claim("counted", {
          mode: "shared",
          limit,
          ttlMs: randomInt(10) ? 60_000 : 200,
        });
        const { kind } = await engine.tryAcquire(one, now());
        if (kind === "granted") held.push(one);
        else assert.ok(held.length >= limit, `${kind} with ${held.length} of ${limit}`);
      }
      const { rows } = await server.admin.query(`SELECT r.held::int, count(g.*)::int AS rows
        FROM holdfast.resources r LEFT JOIN holdfast.grants g ON g.resource = r.name
        WHERE r.name = 'counted' AND r.counted_until > clock_timestamp() GROUP BY r.held`);
      if (rows.length > 0) assert.equal(rows[0].held, rows[0].rows, `after ${i} operations`);
      const live = await server.admin.query(`SELECT count(*)::int AS n FROM holdfast.grants
        WHERE resource = 'counted'`);
      assert.ok(live.rows[0].n <= limit, `${live.rows[0].n} hold ${limit} permits`);
    }
  });
});

type Statement = [text: string, values: unknown[]];

function compare(few: Record<string, number>, many: Record<string, number>): void {
  for (const [what, rows] of Object.entries(many)) {
    const text = `${what}: ${few[what]} rows beside ${FEW}, ${rows} beside ${MANY}`;
    assert.ok(rows <= 1.5 * few[what]! + SLACK, text);
  }
}

/** The rows that a statement reads the second time. The first time also counts the holders. */
async function read(client: pg.Client, [text, values]: Statement): Promise<number> {
  await client.query("BEGIN");
  const before = (await client.query(READ)).rows[0].n;
  await client.query(text, values);
  const rows = (await client.query(READ)).rows[0].n - before;
  await client.query("ROLLBACK");
  return rows;
}

/** Runs an operation just before: it counts the holders for the next second. */
async function settle(client: pg.Client, name: string, id: string, limit: number): Promise<void> {
  await client.query(...run("acquire", name, { id, shared: true, limit }));
  await client.query(...run("acquire", name, { shared: true, limit: limit + 1 }));
  // Extends that second.
  await client.query(
    "UPDATE holdfast.resources SET counted_until = now() + interval '1 hour' WHERE name = $1",
    [name],
  );
}

function run(verb: string, name: string, more: Record<string, unknown> = {}): Statement {
  const terms = {
    shared: false,
    limit: 0,
    tokens: 1,
    ttl: 10_000,
    delay: 0,
    label: "",
    pace: 1_000,
  };
  const where = { channel: "", tombstone: 0, changes: "changes", id: mintGrantId() };
  const op = { verb, name, ...terms, ...where, ...more };
  return ["SELECT holdfast.run_one($1::jsonb, 1000, 60000)", [JSON.stringify(op)]];
}

async function plantReaders(client: pg.Client, name: string, n: number, limit: number) {
  const ids = Array.from({ length: n }, () => mintGrantId());
  await client.query("INSERT INTO holdfast.resources (name) VALUES ($1)", [name]);
  await client.query(
    `INSERT INTO holdfast.grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms,
        expires_at, label)
      SELECT id, $1, true, $2, nextval('holdfast.tokens'), 1, 1000, 0, now() + interval '1 day', ''
        FROM unnest($3::uuid[]) id`,
    [name, limit, ids],
  );
  return ids;
}

async function plantWaiters(client: pg.Client, name: string, n: number, shared: boolean) {
  const ids = Array.from({ length: n }, () => mintGrantId());
  await client.query(
    `INSERT INTO holdfast.waiters (grant_id, resource, shared, limit_to, tokens, ttl_ms, delay_ms,
        heard_at, channel, label, nth)
      SELECT id, $1, $2, 0, 1, 1000, 0, now() + interval '1 day', '', '', n
        FROM unnest($3::uuid[]) WITH ORDINALITY u(id, n)`,
    [name, shared, ids],
  );
  return ids;
}
