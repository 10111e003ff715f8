// A Redis user with the rights that docs/engines/redis.md lists, and no others.
import assert from "node:assert/strict";
import { connect } from "../../../../connect.js";
import type { Lease } from "../../../../core/holding/lease.js";
import { channels } from "../../../../events.js";
import type { Locks } from "../../../../locks.js";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { REPLICAS_RULES, RULES } from "../support/rights.fixture.js";
import {
  CLIENT_NAMES,
  type ClientName,
  describeWithServer,
  type OpenOptions,
  PROMPT,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const SECRET = "a password";

let users = 0;

describeWithServer(
  "access",
  (it) => {
    for (const client of CLIENT_NAMES) {
      it(`everything works for a user with only the documented rights (${client})`, async (redis) => {
        const open = await asUser(redis, client, RULES);
        await useEverything(redis, open(), open());
      });

      it(`a user without the right to the keys gets an error that says so (${client})`, async (redis) => {
        const open = await asUser(redis, client, [
          ...RULES.filter((rule) => !rule.startsWith("~")),
          "~other:*",
        ]);
        await assert.rejects(open().acquire("a"), {
          code: "ENGINE",
          effect: "none",
          message: /may not/,
        });
      });

      it(`a user without the right to run scripts gets an error that says so (${client})`, async (redis) => {
        const open = await asUser(redis, client, [...RULES, "-evalsha", "-eval"]);
        await assert.rejects(open().acquire("a"), {
          code: "ENGINE",
          effect: "none",
          message: /may not/,
        });
      });

      it(`a user without the right to a command of the script gets an error that says so (${client})`, async (redis) => {
        const open = await asUser(redis, client, [...RULES, "-set"]);
        await assert.rejects(open().acquire("a"), { code: "ENGINE", message: /may not/ });
      });

      it(`a user without channels waits by heartbeats, gets an event, and leaks no connections (${client})`, async (redis) => {
        const open = await asUser(
          redis,
          client,
          RULES.filter((rule) => !rule.startsWith("&")),
        );
        const [ours, other] = [open(), open()];
        const told: unknown[] = [];
        const hear = (event: unknown) => told.push((event as { error: unknown }).error);
        channels.failed.subscribe(hear);
        try {
          for (let i = 0; i < 2; i++) {
            await soon(1_800, async () => {
              const held = await other.acquire("a");
              const waiting = ours.acquire("a");
              await redis.untilWaiters(other, "a", 1);
              const tookMs = await timed(async () => {
                assert.equal(await held.release(), "released");
                await waiting;
              });
              assert.equal(await (await waiting).release(), "released");
              assert.deepEqual((await ours.inspect("a")).waiters, []);
              return tookMs;
            });
          }
          for (let i = 0; i < 20; i++) await (await ours.acquire("b")).release();
        } finally {
          channels.failed.unsubscribe(hear);
        }
        assert.ok(told.some((error) => /NOPERM|may not/.test(String(error))));
        const list = (await redis.admin.call("CLIENT", "LIST")) as string;
        const connections = list.split("\n").filter((line) => line.includes(`user=${open.user} `));
        assert.ok(connections.length <= 4, `${connections.length} connections`);
      });
    }

    it("a user with only the documented rights can connect by URL and lock", async (redis) => {
      const { user } = await asUser(redis, "ioredis", RULES);
      const url = `redis://${user}:${encodeURIComponent(SECRET)}@127.0.0.1:${redis.server.port}`;
      await using ours = await connect(url);
      await using other = await connect(url);
      await useEverything(redis, ours, other);
    });

    it("each of the documented commands is needed", async (redis) => {
      // The two clients themselves need some commands that the use of locks does not show.
      const comfort = ["+ping", "+select", "+info"];
      for (const rule of RULES.filter((rule) => rule.startsWith("+") && !comfort.includes(rule))) {
        await redis.admin.flushall();
        await redis.admin.script("FLUSH");
        const open = await asUser(redis, "ioredis", [...RULES, rule.replace("+", "-")]);
        await using ours = open();
        await using other = open();
        const well = await useEverything(redis, ours, other, 300).then(
          () => true,
          () => false,
        );
        assert.equal(well, false, `all went well without ${rule}`);
      }
    });

    it("for replicas, the rights that the table adds are enough, and each is needed", async (redis) => {
      await redis.replicas(1);
      const replicas = { wait: 1, timeoutMs: 5_000 };
      for (const client of CLIENT_NAMES) {
        for (const without of ["", ...REPLICAS_RULES]) {
          const rules = REPLICAS_RULES.filter((rule) => rule !== without);
          const open = await asUser(redis, client, [...RULES, ...rules]);
          const taken = open({ replicas }).tryAcquire(`${client} ${without}`, {
            callTimeoutMs: 15_000,
          });
          if (without === "") assert.ok(await taken);
          else await assert.rejects(taken, { code: "ENGINE" }, `all went well without ${without}`);
        }
      }
    });

    it("a key without access rights fails its own resource, and no other in the same call", async (redis) => {
      const keys = ["~holdfast:mine*", "~{holdfast:mine*"];
      const open = await asUser(redis, "ioredis", [
        ...RULES.filter((rule) => !rule.startsWith("~")),
        ...keys,
      ]);
      const locks = open();
      const names = ["mine:1", "theirs:1", "mine:2"];
      const outcomes = await Promise.allSettled(names.map((name) => locks.acquire(name)));
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ["fulfilled", "rejected", "fulfilled"],
      );
    });

    it("a wrong password is reported, and never shown", async (redis) => {
      await asUser(redis, "ioredis", RULES);
      const user = [`limited${users}`, "the wrong one"] as const;
      const locks = redis.locks({ client: "node-redis", user });
      await assert.rejects(locks.acquire("a", { callTimeoutMs: 300 }), (error: Error) => {
        assert.doesNotMatch(`${error.stack}${String(error.cause)}`, /the wrong one/);
        return true;
      });
    });
  },
  PROMPT,
);

/** Creates a user with these rights; gives a function that opens locks as this user. */
async function asUser(redis: RedisTestServer, client: ClientName, rules: readonly string[]) {
  const name = `limited${++users}`;
  await redis.admin.call("ACL", "SETUSER", name, "on", `>${SECRET}`, ...rules);
  const open = (more: OpenOptions = {}) => redis.locks({ client, user: [name, SECRET], ...more });
  return Object.assign(open, { user: name });
}

/** Uses every verb, in both modes, with a queue and without. */
async function useEverything(
  redis: RedisTestServer,
  ours: Locks,
  other: Locks,
  waitMs = 20_000,
): Promise<void> {
  let next!: Lease;
  // The grant is pushed: a heartbeat would find it a second later.
  await soon(500, async (attempt) => {
    if (attempt > 0) await next.release();
    const lease = await ours.acquire("a", { waitMs, callTimeoutMs: waitMs });
    await lease.renew();
    assert.ok(await ours.check(lease.sequencer));
    assert.equal(await other.tryAcquire("a"), null);
    const waiting = other.acquire("a", { waitMs });
    await Promise.race([waiting, redis.untilWaiters(ours, "a", 1)]);
    const tookMs = await timed(async () => {
      await lease.release();
      await waiting;
    });
    next = await waiting;
    return tookMs;
  });
  assert.equal(await ours.revoke("a", { token: next.token }), "revoked");
  // The next renewal would be ten seconds later.
  await until("the revocation is pushed", () => !next.held, 5_000);
  await next.release();
  const readers = [];
  for (let i = 0; i < 2; i++) {
    readers.push(await ours.acquire("b", { mode: "shared", limit: 2, waitMs, lockDelayMs: 10 }));
  }
  const third = other.acquire("b", { mode: "shared", limit: 2, waitMs });
  await Promise.race([third, redis.untilWaiters(ours, "b", 1)]);
  const listed = [];
  for await (const view of ours.list()) listed.push(view.resource);
  assert.deepEqual(listed, ["b"]);
  await readers[0]!.renew();
  for (const reader of readers) await reader.release();
  await (await third).release();
}
