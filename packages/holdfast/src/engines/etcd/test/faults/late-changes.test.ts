// Changes of a grant that arrive late, or whose answers do. Later changes must not be undone.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import type { Claim } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim as claimOf } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import type { EtcdLocks } from "../../index.js";
import { deletionOf, HoldingRelay, putOf } from "../support/holding-relay.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

/** For calls without an answer: long enough to send them, also on a busy machine. */
const TIMEOUT_MS = 1_500;
const SETTLE_MS = 300;

interface Setup {
  readonly etcd: EtcdTestServer;
  readonly relay: HoldingRelay;
  /** Connected through the relay. */
  readonly engine: EtcdLocks;
}

function itWithServer(title: string, part: (setup: Setup) => Promise<void>): void {
  it(title, async () => {
    await using server = await startEtcd();
    await using relay = await new HoldingRelay(server.port).start();
    await using etcd = new EtcdTestServer(server);
    await part({ etcd, relay, engine: etcd.engine({ endpoints: [relay.endpoint] }) });
  });
}

const claim = (resource: string, more: Partial<Claim> = {}) =>
  claimOf(resource, { ttlMs: 30_000, tokens: 3, ...more });

async function take(engine: EtcdLocks, one: Claim): Promise<bigint> {
  const answer = await engine.tryAcquire(one, now());
  assert.equal(answer.kind, "granted");
  return answer.kind === "granted" ? answer.token : 0n;
}

/** The kind of the answer to a renewal. */
async function renew(
  engine: EtcdLocks,
  { resource, grantId }: Claim,
  more: { ttlMs: number; index?: number; leave?: boolean; timeoutMs?: number },
): Promise<string> {
  const { timeoutMs = 5_000, ...terms } = more;
  const [answer] = await engine.renew([{ resource, grantId, ...terms }], now(timeoutMs));
  return answer!.kind === "failed" ? `failed, ${answer!.effect}` : answer!.kind;
}

async function leftMs({ etcd }: Setup, resource: string): Promise<number> {
  const { holders } = await etcd.engine().inspect(resource, now());
  return holders[0]?.remainingMs ?? 0;
}

describe("late changes of a grant on etcd", { concurrency: 4 }, () => {
  itWithServer("a late shorter renewal takes nothing back from a later renewal", async (setup) => {
    const { engine, relay } = setup;
    const one = claim("order");
    await take(engine, one);
    relay.holdRequests(putOf("holdfast/order/"));
    const shorter = { ttlMs: 8_000, timeoutMs: TIMEOUT_MS };
    assert.equal(await renew(engine, one, shorter), "failed, unknown");
    relay.stopHolding();
    // It changes nothing in the key, and must still prevent the earlier renewal.
    assert.equal(await renew(engine, one, { ttlMs: 30_000 }), "renewed");
    relay.deliver();
    await sleep(SETTLE_MS);
    assert.ok((await leftMs(setup, "order")) > 20_000);
    assert.equal(await renew(engine, one, { ttlMs: 30_000 }), "renewed");
  });

  itWithServer(
    "a renewal whose answer was lost does not make later renewals write",
    async (setup) => {
      const { engine, relay, etcd } = setup;
      const one = claim("order");
      await take(engine, one);
      relay.holdAnswers(putOf("holdfast/order/"));
      const longer = { ttlMs: 60_000, timeoutMs: TIMEOUT_MS };
      assert.equal(await renew(engine, one, longer), "failed, unknown");
      relay.deliver();
      assert.equal(await renew(engine, one, { ttlMs: 60_000 }), "renewed");
      const key = async () => etcd.ctl("get", "--prefix", "holdfast/order/", "-w", "json");
      const before = await key();
      assert.equal(await renew(engine, one, { ttlMs: 60_000 }), "renewed");
      const modified = (json: string) => /"mod_revision":(\d+)/.exec(json)?.[1];
      assert.equal(modified(await key()), modified(before), "the usual renewal only reads");
    },
  );

  itWithServer(
    "a late forced revocation does not end a grant that was handed over since",
    async (setup) => {
      const { engine, relay, etcd } = setup;
      const other = etcd.engine();
      const one = claim("given");
      const token = await take(other, one);
      relay.holdRequests(deletionOf("holdfast/given/"));
      const revoking = engine.revoke({ resource: "given", token, force: true }, now(1_000));
      await sleep(SETTLE_MS);
      assert.equal(await renew(other, one, { ttlMs: 30_000, index: 1 }), "renewed");
      relay.deliver();
      await revoking.catch(() => {});
      await sleep(SETTLE_MS);
      assert.equal(await renew(other, one, { ttlMs: 30_000, index: 1 }), "renewed");
    },
  );

  itWithServer(
    "a grant that was left behind by an unanswered renewal is not ended by its process",
    async (setup) => {
      const { engine, relay } = setup;
      const [one, neighbour] = [claim("leave", { ttlMs: 4_000 }), claim("kept", { ttlMs: 4_000 })];
      await take(engine, neighbour);
      await take(engine, one);
      relay.holdAnswers(putOf("holdfast/leave/"));
      const leave = { ttlMs: 12_000, leave: true, timeoutMs: TIMEOUT_MS };
      assert.equal(await renew(engine, one, leave), "failed, unknown");
      relay.deliver();
      for (let i = 0; i < 7; i++) {
        await sleep(600);
        assert.equal(await renew(engine, neighbour, { ttlMs: 4_000 }), "renewed");
      }
      assert.ok((await leftMs(setup, "leave")) > 0, "it was left behind for twelve seconds");
      assert.equal(await renew(engine, one, { ttlMs: 4_000 }), "gone");
      await until("its time is over", async () => (await leftMs(setup, "leave")) === 0, 20_000);
    },
  );

  itWithServer(
    "a grant that was left behind is not ended by a release, even if it was revoked",
    async (setup) => {
      const { engine, etcd } = setup;
      for (const revoked of [false, true]) {
        const one = claim(`free-${revoked}`);
        const token = await take(engine, one);
        assert.equal(await renew(engine, one, { ttlMs: 20_000, leave: true }), "renewed");
        const { resource } = one;
        const gently = { resource, token, force: false };
        if (revoked) assert.equal(await etcd.engine().revoke(gently, now()), "revoked");
        const [answer] = await engine.release([{ ...one, tombstoneMs: 1_000 }], now());
        assert.deepEqual(answer, { kind: "gone", why: "expired" });
        const next = await etcd.engine().tryAcquire(claim(resource), now());
        assert.equal(next.kind, "busy");
      }
    },
  );

  itWithServer(
    "a grant that could not be left behind ends at its time, although others keep its lease alive",
    async (setup) => {
      const { engine, relay } = setup;
      const [one, neighbour] = [claim("leave", { ttlMs: 4_000 }), claim("kept", { ttlMs: 4_000 })];
      await take(engine, neighbour);
      await take(engine, one);
      relay.holdRequests(putOf("holdfast/leave/"));
      const leave = { ttlMs: 12_000, leave: true, timeoutMs: TIMEOUT_MS };
      assert.equal(await renew(engine, one, leave), "failed, unknown");
      // The other grant is renewed all the time.
      await until("its time is over", async () => {
        assert.equal(await renew(engine, neighbour, { ttlMs: 4_000 }), "renewed");
        return (await leftMs(setup, "leave")) === 0;
      });
      relay.deliver();
      await sleep(SETTLE_MS);
      assert.equal(
        await leftMs(setup, "leave"),
        0,
        "the late request finds nothing to leave behind",
      );
    },
  );

  itWithServer(
    "a holder that is renewed while it is being revoked keeps the time of that renewal",
    async (setup) => {
      const { engine, relay, etcd } = setup;
      const other = etcd.engine();
      const one = claim("given", { ttlMs: 6_000 });
      const token = await take(other, one);
      relay.holdRequests(putOf("holdfast/given/"));
      const revoking = engine.revoke({ resource: "given", token, force: false }, now(20_000));
      await until("the revocation is under way", () => relay.held > 0);
      await sleep(2_500);
      const at = performance.now();
      assert.equal(await renew(other, one, { ttlMs: 6_000 }), "renewed");
      relay.deliver();
      assert.equal(await revoking, "revoked");
      // etcd reports whole seconds, rounded up.
      const left = await leftMs(setup, "given");
      const believed = 6_000 - (performance.now() - at);
      assert.ok(left >= believed, `the key has ${left} ms, its holder believes in ${believed} ms`);
      assert.equal(await renew(other, one, { ttlMs: 6_000 }), "gone");
      // Other grants keep its former lease alive. The grant must still end.
      await take(other, claim("other", { ttlMs: 6_000 }));
      await until("it has ended", async () => (await leftMs(setup, "given")) === 0, 20_000);
    },
  );

  itWithServer(
    "a waiter that asks again instead of sending heartbeats keeps its place",
    async (setup) => {
      const { engine, etcd } = setup;
      await take(etcd.engine(), claim("place"));
      const waiter = claim("place");
      const ask = async () => (await engine.queue!.enqueue(waiter, now())).kind;
      assert.equal(await ask(), "queued");
      const keys = async () => {
        const json = await etcd.ctl("get", "--prefix", "holdfast/place/", "-w", "json");
        return [...json.matchAll(/"create_revision":(\d+)/g)]
          .map(([, revision]) => revision)
          .sort();
      };
      const before = await keys();
      // Its lease is replaced by another one, and ends in three seconds.
      await etcd.ctl("del", "--prefix", "holdfast/%note/");
      for (let i = 0; i < 8; i++) {
        await sleep(600);
        assert.equal(await ask(), "queued");
      }
      assert.deepEqual(await keys(), before, "the keys were not created again");
    },
  );
});
