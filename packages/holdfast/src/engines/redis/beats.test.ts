// A push names the heartbeat after which its grant was made, and its life counts from where that one
// was sent. A number that is used twice would date an early grant to a late instant.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Beats } from "./beats.js";
import { claim, now, scenes, until } from "./ground.fixture.js";

test("a number is never used again for a grant, however often its waiter is forgotten", () => {
  const beats = new Beats();
  const ref = claim("a");
  const used = new Set<number>();
  for (let life = 0; life < 3; life++) {
    for (let beat = 0; beat < 3; beat++) used.add(beats.next(ref, life));
    beats.forget(ref.grantId);
  }
  assert.equal(used.size, 9);
  assert.ok(!used.has(0), "which is not the number of any heartbeat");
});

test("a push is dated by the heartbeat that it names, and by no other", () => {
  const beats = new Beats();
  const ref = claim("a");
  const first = beats.next(ref, 1_000);
  const second = beats.next(ref, 2_000);
  assert.equal(beats.at(ref.grantId, first)?.since, 1_000);
  assert.equal(beats.at(ref.grantId, second)?.since, 2_000);
  assert.equal(beats.at(ref.grantId, second + 1), null);
  beats.forget(ref.grantId);
  const third = beats.next(ref, 3_000);
  assert.equal(beats.at(ref.grantId, first), null);
  assert.equal(beats.at(ref.grantId, third)?.since, 3_000);
});

scenes("pushes", (play) => {
  play("one that names an enqueue is not dated to a repeat that never arrived", async (ground) => {
    const relay = await ground.relay();
    const holder = ground.engine();
    const waiter = ground.engine({ port: relay.port, pushPort: ground.server.port });
    const [held, waiting] = [claim("a"), claim("a")];
    const told: number[] = [];
    waiter.queue!.onGrant((_, { since }) => told.push(since));
    await waiter.tryAcquire(claim("warm up"), now());
    await holder.tryAcquire(held, now());

    // The enqueue is carried out, its answer is lost, and the copy that ioredis sends is refused.
    relay.mute();
    const first = now();
    const asked = waiter.queue!.enqueue(waiting, first);
    asked.catch(() => {});
    await until("it stands in line", () => ground.admin.exists("{holdfast:a}:queue"));
    await ground.admin.config("SET", "maxmemory", "1");
    relay.cut();
    relay.mend();
    await assert.rejects(asked, { code: "ENGINE" });
    await ground.admin.config("SET", "maxmemory", "0");

    relay.hold();
    void waiter.queue!.enqueue(waiting, now()).catch(() => {});
    const heard = new Promise<void>((resolve) => {
      waiter.watch!.onChange(() => resolve());
    });
    await holder.release([{ ...held, tombstoneMs: 0 }], now());
    // Messages arrive in their order.
    await ground.admin.publish("holdfast.changes", "holdfast:a");
    await heard;
    for (const since of told) assert.equal(since, first.startedAt);
    relay.deliver();
  });
});
