// Changes of a grant that arrive late, or whose answers do: what came after them must stand.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import type { Claim } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim as claimOf } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import type { EtcdLocks } from "../../index.js";
import { deletionOf, HeldBack, putOf } from "../support/held-back.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

/** For what is not answered: long enough to send it, on a busy machine too. */
const IN_VAIN_MS = 1_500;
const AWHILE_MS = 300;

interface Scene {
  readonly etcd: EtcdTestServer;
  readonly relay: HeldBack;
  /** Behind the relay. */
  readonly engine: EtcdLocks;
}

function itWithServer(title: string, part: (scene: Scene) => Promise<void>): void {
  it(title, async () => {
    await using server = await startEtcd();
    await using relay = await new HeldBack(server.port).start();
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

async function leftMs({ etcd }: Scene, resource: string): Promise<number> {
  const { holders } = await etcd.engine().inspect(resource, now());
  return holders[0]?.remainingMs ?? 0;
}

describe("late changes of a grant on etcd", { concurrency: 4 }, () => {
  itWithServer(
    "a shorter renewal takes nothing back from a later one of the usual ttl",
    async (scene) => {
      const { engine, relay } = scene;
      const one = claim("order");
      await take(engine, one);
      relay.withhold(putOf("holdfast/order/"));
      const shorter = { ttlMs: 8_000, timeoutMs: IN_VAIN_MS };
      assert.equal(await renew(engine, one, shorter), "failed, unknown");
      relay.enough();
      // It changes nothing in the record, and must be remembered all the same.
      assert.equal(await renew(engine, one, { ttlMs: 30_000 }), "renewed");
      relay.letGo();
      await sleep(AWHILE_MS);
      assert.ok((await leftMs(scene, "order")) > 20_000);
      assert.equal(await renew(engine, one, { ttlMs: 30_000 }), "renewed");
    },
  );

  itWithServer(
    "a renewal whose answer was lost does not make later renewals write",
    async (scene) => {
      const { engine, relay, etcd } = scene;
      const one = claim("order");
      await take(engine, one);
      relay.keep(putOf("holdfast/order/"));
      const longer = { ttlMs: 60_000, timeoutMs: IN_VAIN_MS };
      assert.equal(await renew(engine, one, longer), "failed, unknown");
      relay.letGo();
      assert.equal(await renew(engine, one, { ttlMs: 60_000 }), "renewed");
      const key = async () => etcd.ctl("get", "--prefix", "holdfast/order/", "-w", "json");
      const before = await key();
      assert.equal(await renew(engine, one, { ttlMs: 60_000 }), "renewed");
      const modified = (json: string) => /"mod_revision":(\d+)/.exec(json)?.[1];
      assert.equal(modified(await key()), modified(before), "the usual renewal only reads");
    },
  );

  itWithServer(
    "a forced revocation does not hit the one to whom the lease was passed on",
    async (scene) => {
      const { engine, relay, etcd } = scene;
      const other = etcd.engine();
      const one = claim("given");
      const token = await take(other, one);
      relay.withhold(deletionOf("holdfast/given/"));
      const revoking = engine.revoke({ resource: "given", token, force: true }, now(1_000));
      await sleep(AWHILE_MS);
      assert.equal(await renew(other, one, { ttlMs: 30_000, index: 1 }), "renewed");
      relay.letGo();
      await revoking.catch(() => {});
      await sleep(AWHILE_MS);
      assert.equal(await renew(other, one, { ttlMs: 30_000, index: 1 }), "renewed");
    },
  );

  itWithServer(
    "a grant that was left, and nobody knows, is not ended by its own process",
    async (scene) => {
      const { engine, relay } = scene;
      const [one, neighbour] = [claim("leave", { ttlMs: 4_000 }), claim("kept", { ttlMs: 4_000 })];
      await take(engine, neighbour);
      await take(engine, one);
      relay.keep(putOf("holdfast/leave/"));
      const leave = { ttlMs: 12_000, leave: true, timeoutMs: IN_VAIN_MS };
      assert.equal(await renew(engine, one, leave), "failed, unknown");
      relay.letGo();
      for (let i = 0; i < 7; i++) {
        await sleep(600);
        assert.equal(await renew(engine, neighbour, { ttlMs: 4_000 }), "renewed");
      }
      assert.ok((await leftMs(scene, "leave")) > 0, "it was left for twelve seconds");
      assert.equal(await renew(engine, one, { ttlMs: 4_000 }), "gone");
      await until("its time is over", async () => (await leftMs(scene, "leave")) === 0, 20_000);
    },
  );

  itWithServer(
    "a grant that was left is not ended by a release, even of a revoked one",
    async (scene) => {
      const { engine, etcd } = scene;
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
    "a grant that could not be left ends at its time, though its neighbours live on",
    async (scene) => {
      const { engine, relay } = scene;
      const [one, neighbour] = [claim("leave", { ttlMs: 4_000 }), claim("kept", { ttlMs: 4_000 })];
      await take(engine, neighbour);
      await take(engine, one);
      relay.withhold(putOf("holdfast/leave/"));
      const leave = { ttlMs: 12_000, leave: true, timeoutMs: IN_VAIN_MS };
      assert.equal(await renew(engine, one, leave), "failed, unknown");
      // Its neighbour is kept all the time.
      await until("its time is over", async () => {
        assert.equal(await renew(engine, neighbour, { ttlMs: 4_000 }), "renewed");
        return (await leftMs(scene, "leave")) === 0;
      });
      relay.letGo();
      await sleep(AWHILE_MS);
      assert.equal(await leftMs(scene, "leave"), 0, "what arrives then finds nothing to leave");
    },
  );

  itWithServer(
    "a holder that is renewed while it is being revoked keeps what it was told",
    async (scene) => {
      const { engine, relay, etcd } = scene;
      const other = etcd.engine();
      const one = claim("given", { ttlMs: 6_000 });
      const token = await take(other, one);
      relay.withhold(putOf("holdfast/given/"));
      const revoking = engine.revoke({ resource: "given", token, force: false }, now(20_000));
      await until("the revocation is under way", () => relay.caught > 0);
      await sleep(2_500);
      const at = performance.now();
      assert.equal(await renew(other, one, { ttlMs: 6_000 }), "renewed");
      relay.letGo();
      assert.equal(await revoking, "revoked");
      // It is told in whole seconds, upwards.
      const left = await leftMs(scene, "given");
      const believed = 6_000 - (performance.now() - at);
      assert.ok(left >= believed, `the key has ${left} ms, its holder believes in ${believed} ms`);
      assert.equal(await renew(other, one, { ttlMs: 6_000 }), "gone");
      // Neighbours keep the lease alive that it had; it must end all the same.
      await take(other, claim("other", { ttlMs: 6_000 }));
      await until("it has ended", async () => (await leftMs(scene, "given")) === 0, 20_000);
    },
  );

  itWithServer(
    "a waiter that asks again instead of sending heartbeats keeps its place",
    async (scene) => {
      const { engine, etcd } = scene;
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
      // Its lease is given up for another one, and ends in three seconds.
      await etcd.ctl("del", "--prefix", "holdfast/%note/");
      for (let i = 0; i < 8; i++) {
        await sleep(600);
        assert.equal(await ask(), "queued");
      }
      assert.deepEqual(await keys(), before, "the same keys as ever");
    },
  );
});
