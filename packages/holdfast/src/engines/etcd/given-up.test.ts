// Claims that are given up: before they were sent, and after.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import { callNow } from "../../call.fixture.js";
import type { Claim } from "../../engine.js";
import { mintGrantId } from "../../grant-id.js";
import { Ground, until } from "./ground.fixture.js";
import { deletionOf, HeldBack, putOf } from "./held-back.fixture.js";

const TTL_MS = 4_000;
/** A waiter is given up when nobody asks after it for three seconds. */
const FORGOTTEN_MS = 3_000;

function claim(resource: string, more: Partial<Claim> = {}): Claim {
  return {
    ...{ resource, grantId: mintGrantId(), mode: "exclusive", limit: null, ttlMs: TTL_MS },
    ...{ lockDelayMs: 0, tokens: 1, label: "test" },
    ...more,
  };
}

describe("claims of etcd that are given up", { concurrency: 4 }, () => {
  for (const verb of ["tryAcquire", "enqueue"] as const) {
    it(`a release is not swallowed by a repeated ${verb} that was not sent yet`, async () => {
      await using server = await startEtcd();
      await using ground = new Ground(server);
      const [relay] = await ground.relays();
      const engine = ground.engine({ endpoints: [`127.0.0.1:${relay!.port}`] });
      const keys = () => ground.ctl("get", "--prefix", "--keys-only", "holdfast/first/");
      const neighbour = claim("other");
      assert.equal((await engine.tryAcquire(neighbour, callNow())).kind, "granted");
      // The lease of waiters is there already, too.
      assert.equal((await engine.queue!.enqueue(claim("other"), callNow())).kind, "queued");
      const one = claim("first");
      const ask = (timeoutMs: number) =>
        verb === "enqueue"
          ? engine.queue!.enqueue(one, callNow(timeoutMs))
          : engine.tryAcquire(one, callNow(timeoutMs));
      relay!.mute();
      const first = ask(1_000).catch(() => "failed");
      await until("the claim has arrived", async () => (await keys()) !== "");
      relay!.cut();
      assert.equal(await first, "failed");
      // Its lease is not fresh any more, so the repeat asks for that first, and cannot.
      await sleep(TTL_MS / 2);
      const second = ask(3_000).catch(() => "failed");
      await sleep(100);
      const released = engine.release([{ ...one, tombstoneMs: 60_000 }], callNow(500));
      assert.notEqual((await released)[0]!.kind, "gone", "nobody has said so");
      relay!.mend();
      await second;
      await until("it was taken away", async () => {
        await engine.renew([{ ...neighbour, ttlMs: TTL_MS }], callNow());
        return (await keys()) === "";
      });
    });
  }

  for (const asks of [false, true]) {
    const title = asks ? "was granted by a push" : "was granted by a heartbeat";
    it(`a waiter that was given up and then ${title} is not ended by that`, async () => {
      await using server = await startEtcd();
      await using relay = await new HeldBack(server.port).start();
      await using ground = new Ground(server);
      const [engine, other] = [ground.engine({ endpoints: [relay.endpoint] }), ground.engine()];
      const ttlMs = 30_000;
      const [holder, waiter] = [claim("first", { ttlMs }), claim("first", { ttlMs })];
      await other.tryAcquire(holder, callNow());
      assert.equal((await engine.queue!.enqueue(waiter, callNow())).kind, "queued");
      let pushes = 0;
      engine.queue!.onGrant(() => pushes++);
      // Its lease lives on without it, as for other waiters of its process.
      const neighbour = claim("other", { ttlMs });
      await other.tryAcquire(claim("other", { ttlMs }), callNow());
      await engine.queue!.enqueue(neighbour, callNow());
      relay.withhold(deletionOf("holdfast/first/"));
      const started = performance.now();
      while (relay.caught === 0) {
        assert.ok(performance.now() - started < 10 * FORGOTTEN_MS, "nobody gave it up");
        await engine.queue!.heartbeat([neighbour], callNow());
        await sleep(300);
      }
      if (asks) {
        assert.equal((await engine.queue!.heartbeat([waiter], callNow()))[0]!.kind, "queued");
        await sleep(300);
      }
      await other.release([{ ...holder, tombstoneMs: 0 }], callNow());
      if (asks) await until("it is told", () => pushes === 1);
      else assert.equal((await engine.queue!.heartbeat([waiter], callNow()))[0]!.kind, "granted");
      relay.letGo();
      await sleep(300);
      const next = await other.tryAcquire(claim("first"), callNow());
      assert.equal(next.kind, "busy", "the waiter holds");
      const [renewed] = await engine.renew([{ ...waiter, ttlMs }], callNow());
      assert.equal(renewed!.kind, "renewed");
    });
  }

  it("a waiter whose turn was told to nobody is taken away in time", async () => {
    await using server = await startEtcd();
    await using relay = await new HeldBack(server.port).start();
    await using ground = new Ground(server);
    const [engine, other] = [ground.engine({ endpoints: [relay.endpoint] }), ground.engine()];
    const [holder, waiter, neighbour] = [claim("first"), claim("first"), claim("other")];
    await other.tryAcquire(holder, callNow());
    await engine.tryAcquire(neighbour, callNow());
    assert.equal((await engine.queue!.enqueue(waiter, callNow())).kind, "queued");
    relay.keep(putOf("holdfast/first/"));
    await other.release([{ ...holder, tombstoneMs: 0 }], callNow());
    await engine.queue!.heartbeat([waiter], callNow(600));
    await until(
      "it is there no more",
      async () => {
        await engine.renew([{ ...neighbour, ttlMs: TTL_MS }], callNow());
        return (await ground.ctl("get", "--prefix", "--keys-only", "holdfast/first/")) === "";
      },
      10 * TTL_MS,
    );
  });
});
