// Grants and renewals that count only when replicas have them. A stopped replica stays connected
// and confirms nothing.
import assert from "node:assert/strict";
import { once } from "node:events";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisServer } from "@holdfast/servers";
import { Redis } from "ioredis";
import { connect } from "../../../../connect.js";
import { fixed } from "../../../../core/acquiring/retry.js";
import { UsageError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { redisEngine } from "../../index.js";
import {
  CLIENT_NAMES,
  describeWithServer,
  PROMPT,
  RedisTestServer,
} from "../support/test-server.fixture.js";

const TIMEOUT_MS = 400;
const ONE = { wait: 1, timeoutMs: TIMEOUT_MS };
/** For replicas that answer: enough time for a busy machine. */
const PATIENT = { wait: 1, timeoutMs: 4_000 };
const retry = () => fixed({ delayMs: 10 });
/** Extra time for a busy machine. */
const SLACK_MS = 2_500;

describeWithServer(
  "replicas",
  (it) => {
    for (const client of CLIENT_NAMES) {
      it(`one of two replicas is enough for grants, renewals and releases (${client})`, async (redis) => {
        await redis.replicas(2);
        const [ours, other] = [0, 1].map(() => redis.locks({ client, replicas: PATIENT }));
        const lease = await ours!.acquire("a");
        await lease.renew();
        const waiting = other!.acquire("a");
        await redis.untilWaiters(ours!, "a", 1);
        await lease.release();
        const next = await waiting;
        assert.ok(next.token > lease.token);
        await next.renew();
        assert.equal(await next.release(), "released");
        const reader = await ours!.acquire("b", { mode: "shared", limit: 2 });
        await reader.renew();
        assert.equal(await reader.release(), "released");
      });

      it(`a claim that needs three replicas of two fails, and leaves nothing behind (${client})`, async (redis) => {
        await redis.replicas(2);
        const locks = redis.locks({ client, replicas: { wait: 3, timeoutMs: 500 } });
        for (const options of [{}, { mode: "shared" as const }, { waitMs: 0 }]) {
          await assert.rejects(locks.acquire("a", options), {
            ...{ code: "ENGINE", effect: "unknown" },
            message: /^2 of the 3 replicas/,
          });
          await until(
            "its grant is released",
            async () => !(await redis.admin.exists("holdfast:a")),
          );
        }
        // Each claim left a tombstone, in case a copy of it is still on its way.
        assert.equal(await redis.admin.zcard("{holdfast:a}:gone"), 3);
        assert.ok(await redis.locks().tryAcquire("a"));
      });

      it(`while replicas do not answer, nothing is granted (${client})`, async (redis) => {
        const replicas = await redis.replicas(2);
        const locks = redis.locks({ client, replicas: ONE });
        await (await locks.acquire("warm up", { retry: retry() })).release();
        for (const replica of replicas) replica.pause();
        const started = performance.now();
        await assert.rejects(locks.acquire("a"), { code: "ENGINE", message: /^0 of the 1/ });
        const tookMs = performance.now() - started;
        assert.ok(tookMs > TIMEOUT_MS * 0.9 && tookMs < TIMEOUT_MS + SLACK_MS, `${tookMs} ms`);
        for (const replica of replicas) replica.resume();
        await until("its grant is released", async () => !(await redis.admin.exists("holdfast:a")));
        // The replicas may need longer to catch up.
        await locks.acquire("a", { retry: retry() });
      });

      it(`while replicas do not answer, a lease is not extended (${client})`, async (redis) => {
        const replicas = await redis.replicas(2);
        const locks = redis.locks({ client, replicas: { wait: 1, timeoutMs: 100 } });
        const ttlMs = 1_500;
        const lease = await locks.acquire("a", { ttlMs, retry: retry() });
        for (const replica of replicas) replica.pause();
        const started = performance.now();
        await assert.rejects(lease.renew(), { code: "ENGINE" });
        assert.ok(lease.held);
        await once(lease.signal, "abort");
        const tookMs = performance.now() - started;
        assert.ok(tookMs < ttlMs + 300, `lost after ${tookMs} ms`);
        // The primary has renewed the grant, but without replicas that does not count.
        assert.equal(lease.signal.reason.reason, "unconfirmed");
      });

      it(`a pushed grant counts when replicas have it, not before (${client})`, async (redis) => {
        const replicas = await redis.replicas(1);
        const held = await redis.locks().acquire("a");
        const ours = redis.locks({ client, replicas: ONE });
        let told = false;
        const waiting = ours.acquire("a", { retry: retry() }).finally(() => {
          told = true;
        });
        await redis.untilWaiters(redis.locks(), "a", 1);
        replicas[0]!.pause();
        await held.release();
        await until("the grant is made", () => redis.admin.exists("holdfast:a"));
        await sleep(2 * TIMEOUT_MS);
        assert.equal(told, false, "the waiter got it although no replica has it");
        replicas[0]!.resume();
        const lease = await waiting;
        assert.ok(lease.held);
        assert.equal(await lease.release(), "released");
      });

      it(`the user's connection is not blocked while the engine waits for replicas (${client})`, async (redis) => {
        const [replica] = await redis.replicas(1);
        const own = client === "ioredis" ? redis.ioRedis() : redis.nodeRedis();
        const replicas = { wait: 1, timeoutMs: 3_000 };
        const engine = redisEngine({ client: own, replicas });
        const mine = claim("a");
        await engine.tryAcquire(claim("warm up"), now());
        replica!.pause();
        let settled = false;
        const asked = engine.tryAcquire(mine, now()).catch(() => {});
        void asked.finally(() => {
          settled = true;
        });
        await until("it waits for the replica", () => blockedConnection(redis));
        const ping = own as unknown as { ping(): Promise<string> };
        assert.equal(await ping.ping(), "PONG");
        // Nor are inspections and releases of the engine itself.
        assert.equal((await engine.inspect("a", now())).holders.length, 1);
        await engine.release([{ ...mine, tombstoneMs: 0 }], now());
        assert.equal(settled, false);
        replica!.resume();
        await asked;
        await engine.close();
      });

      it(`a connection that is lost between the grant and the answer of WAIT confirms nothing (${client})`, async (redis) => {
        // As the first command of a connection, WAIT counts all replicas.
        const ioredis = {
          enableReadyCheck: false,
          disableClientInfo: true,
          protocol: 2,
        } as const;
        const [replica] = await redis.replicas(1);
        const relay = await redis.relay();
        const replicas = { wait: 1, timeoutMs: 3_000 };
        const engine = redis.engine({ client, port: relay.port, replicas, ioredis });
        await engine.tryAcquire(claim("warm up"), now());
        replica!.pause();
        const asked = engine.tryAcquire(claim("a"), now());
        await until("it waits for the replica", () => blockedConnection(redis));
        await sleep(50);
        relay.cut();
        relay.mend();
        await assert.rejects(asked, { code: "ENGINE", effect: "unknown" });
      });
    }

    it("a connection to another server with the same number confirms nothing", async (redis) => {
      // As after a failover: each server numbers its own connections.
      const [replica] = await redis.replicas(1);
      await using second = await RedisTestServer.start(PROMPT);
      await second.replicas(1);
      await openUntil(redis.server, 40);
      const relay = await redis.relay();
      const client = redis.ioRedis();
      const duplicate = client.duplicate.bind(client);
      client.duplicate = (override) => {
        const confirms = !("autoResubscribe" in (override ?? {}));
        return duplicate({ ...override, ...(confirms ? { port: relay.port } : {}) });
      };
      const engine = redisEngine({ client, replicas: { wait: 1, timeoutMs: 3_000 } });
      await engine.tryAcquire(claim("warm up"), now());
      replica!.pause();
      const asked = engine.tryAcquire(claim("a"), now());
      await until("it waits for the replica", () => blockedConnection(redis));
      await openUntil(second.server, (await blockedConnection(redis)) - 1);
      await sleep(50);
      relay.aim(second.server.port);
      relay.cut();
      relay.mend();
      const outcome = await asked.finally(() => engine.close()).catch((error) => error);
      assert.equal(outcome.code, "ENGINE", "it was granted");
    });
  },
  PROMPT,
);

describe("an invalid number of replicas", () => {
  for (const bad of [0, -1, Number.NaN, 1.5, Infinity]) {
    test(`${bad} is refused, as an option and in a URL`, async () => {
      const client = new Redis({ lazyConnect: true });
      for (const replicas of [{ wait: bad }, { wait: 1, timeoutMs: bad }]) {
        assert.throws(() => redisEngine({ client, replicas }), UsageError);
      }
      for (const query of [`replicas=${bad}`, `replicas=1&replicasTimeoutMs=${bad}`]) {
        await assert.rejects(connect(`redis://127.0.0.1:1?${query}`), UsageError);
      }
    });
  }
});

/** The number of a connection that waits for replicas, or 0. */
async function blockedConnection(redis: RedisTestServer): Promise<number> {
  const list = String(await redis.admin.call("CLIENT", "LIST"));
  return Number(/^id=(\d+) .* flags=\S*b/m.exec(list)?.[1] ?? 0);
}

/** Opens and closes connections until one of them has this number. */
async function openUntil(server: RedisServer, id: number): Promise<void> {
  for (let last = 0; last < id; ) {
    const one = new Redis(server.port);
    last = await one.client("ID");
    one.disconnect();
    assert.ok(last <= id, "the server has had more connections than that");
  }
}
