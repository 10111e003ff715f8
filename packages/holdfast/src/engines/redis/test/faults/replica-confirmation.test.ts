// With `replicas`, a pushed grant is confirmed before the waiter gets it. A stopped replica keeps
// the connection that waits for it busy, so the next calls of the engine arrive in a known order.
import assert from "node:assert/strict";
import type { Claim, Engine, Granted, Queued } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { truth } from "../support/record.fixture.js";
import {
  CLIENT_NAMES,
  type ClientName,
  describeWithServer,
  PROMPT,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const KINDS: Readonly<Record<string, Partial<Claim>>> = {
  exclusive: {},
  "exclusive with a lock-delay": { lockDelayMs: 5_000 },
  shared: { mode: "shared", limit: 1 },
};
// Clearly more than the claim window, which is 3 s.
const LONG_MS = 30_000;
const REPLICAS = { wait: 1, timeoutMs: 20_000 };

describeWithServer(
  "a pushed grant that replicas confirm",
  (it) => {
    for (const client of CLIENT_NAMES) {
      for (const kind of Object.keys(KINDS)) {
        it(`its confirmation does not shorten a grant that a heartbeat got (${client}, ${kind})`, async (g) => {
          const { waiter, waiting, grantOnce, settled } = await setUp(g, client, KINDS[kind]!);
          const asked = now();
          let answers: Promise<readonly { kind: string }[]>;
          await grantOnce(() => {
            answers = waiter.queue!.heartbeat([waiting], asked);
          });
          const [answer] = (await answers!) as readonly Granted[];
          assert.equal(answer!.kind, "granted");
          await settled();
          await assertValidity(g, answer!, asked.startedAt);
        });
      }

      it(`the waiter gets it once, for its whole ttl and no longer (${client})`, async (g) => {
        const { pushed, grantOnce, settled } = await setUp(g, client, {});
        await grantOnce(() => {});
        await until("it is granted", () => pushed.length > 0, 20_000);
        await settled();
        assert.equal(pushed.length, 1);
        assert.equal(pushed[0]!.ttlMs, LONG_MS);
        await assertValidity(g, pushed[0]!, pushed[0]!.since);
      });

      it(`its confirmation does not shorten a renewal (${client})`, async (g) => {
        const { waiter, waiting, grantOnce, settled } = await setUp(g, client, {});
        let renewing: Promise<readonly { kind: string }[]>;
        const asked = now();
        await grantOnce(() => {
          void waiter.queue!.heartbeat([waiting], now());
          renewing = waiter.renew([{ ...waiting, ttlMs: 2 * LONG_MS }], asked);
        });
        assert.deepEqual(await renewing!, [
          { kind: "renewed", since: asked.startedAt, ttlMs: 2 * LONG_MS },
        ]);
        await settled();
        assert.ok(((await truth(g.admin, "a"))[0]?.remainingMs ?? 0) > LONG_MS);
      });

      it(`the waiter does not get it if it was released before (${client})`, async (g) => {
        const { waiter, waiting, pushed, grantOnce, settled } = await setUp(g, client, {});
        await grantOnce(() => {});
        const [answer] = await waiter.release([{ ...waiting, tombstoneMs: 0 }], now());
        assert.equal(answer!.kind, "released");
        await settled();
        assert.equal(pushed.length, 0);
        assert.deepEqual(await truth(g.admin, "a"), []);
      });
    }
  },
  PROMPT,
);

/** A holder, and behind it a waiter whose engine needs a replica. */
async function setUp(redis: RedisTestServer, client: ClientName, more: Partial<Claim>) {
  const [replica] = await redis.replicas(1);
  const holder = redis.engine();
  const waiter = redis.engine({ client, replicas: REPLICAS });
  const [held, waiting] = [0, 1].map(() => claim("a", { ttlMs: LONG_MS, ...more })) as [
    Claim,
    Claim,
  ];
  const pushed: Granted[] = [];
  waiter.queue!.onGrant((_, granted) => pushed.push(granted));
  await holder.tryAcquire(held, now());
  const answer = (await waiter.queue!.enqueue(waiting, now())) as Queued;
  assert.equal(answer.kind, "queued");

  /**
   * The holder releases, and the push arrives. The call of `first` is sent before the confirmation.
   */
  const grantOnce = async (first: () => void) => {
    replica!.pause();
    const busy = waiter.tryAcquire(claim("other"), now());
    await until("it waits for the replica", () => isBlocked(redis));
    first();
    const heard = messagesArrive(redis, waiter);
    await holder.release([{ ...held, tombstoneMs: 0 }], now());
    await heard();
    replica!.resume();
    await busy;
  };
  /** Resolves after everything that the waiter's engine has sent until now. */
  const settled = async () => void (await waiter.tryAcquire(claim("last"), now()));
  return { waiter, waiting, pushed, grantOnce, settled };
}

/** Messages arrive in order: when this one has arrived, every push before it has. */
function messagesArrive(redis: RedisTestServer, engine: Engine): () => Promise<void> {
  const heard = new Promise<void>((resolve) => {
    engine.watch!.onChange(() => resolve());
  });
  return async () => {
    await redis.admin.publish("holdfast.changes", "holdfast:a");
    await heard;
  };
}

async function assertValidity(
  redis: RedisTestServer,
  { ttlMs }: Granted,
  since: number,
): Promise<void> {
  const left = (await truth(redis.admin, "a"))[0]?.remainingMs ?? 0;
  const believed = since + ttlMs - now().startedAt;
  assert.ok(
    believed <= left + 1,
    `it is valid for ${believed} ms, and the key has ${left} ms left`,
  );
}

async function isBlocked(redis: RedisTestServer): Promise<boolean> {
  return / flags=\S*b/m.test(String(await redis.admin.call("CLIENT", "LIST")));
}
