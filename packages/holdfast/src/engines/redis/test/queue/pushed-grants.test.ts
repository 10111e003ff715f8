// A push names the heartbeat after which its grant was made. The grant's validity counts from when
// that heartbeat was sent.
import assert from "node:assert/strict";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { describeWithServer } from "../support/test-server.fixture.js";

describeWithServer("pushes", (it) => {
  it("a push that names an enqueue is not dated by a repeat that never arrived", async (redis) => {
    const relay = await redis.relay();
    const holder = redis.engine();
    const waiter = redis.engine({ port: relay.port, pushPort: redis.server.port });
    const [held, waiting] = [claim("a"), claim("a")];
    const told: number[] = [];
    waiter.queue!.onGrant((_, { since }) => told.push(since));
    await waiter.tryAcquire(claim("warm up"), now());
    await holder.tryAcquire(held, now());

    // The enqueue is run, its answer is lost, and the copy that ioredis sends is refused.
    relay.mute();
    const first = now();
    const asked = waiter.queue!.enqueue(waiting, first);
    asked.catch(() => {});
    await until("it is queued", () => redis.admin.exists("{holdfast:a}:queue"));
    await redis.admin.config("SET", "maxmemory", "1");
    relay.cut();
    relay.mend();
    await assert.rejects(asked, { code: "ENGINE" });
    await redis.admin.config("SET", "maxmemory", "0");

    relay.hold();
    void waiter.queue!.enqueue(waiting, now()).catch(() => {});
    const heard = new Promise<void>((resolve) => {
      waiter.watch!.onChange(() => resolve());
    });
    await holder.release([{ ...held, tombstoneMs: 0 }], now());
    // Messages arrive in order.
    await redis.admin.publish("holdfast.changes", "holdfast:a");
    await heard;
    for (const since of told) assert.equal(since, first.startedAt);
    relay.deliver();
  });
});
