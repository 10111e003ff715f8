// A primary with two replicas, watched by Sentinels, that fails.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { SentinelServers } from "@holdfast/servers";
import { Redis } from "ioredis";
import { connect } from "../../connect.js";
import { channels } from "../../events.js";
import { crash, Field } from "./field.fixture.js";
import { claim, now, until } from "./ground.fixture.js";
import { redisEngine } from "./index.js";

let field: Field<SentinelServers>;

before(async () => {
  field = await Field.sentinel();
});
after(async () => field[Symbol.asyncDispose]());

describe("a primary that fails", () => {
  it("is told of by the Sentinels to your client, and not to each connection beside it", async () => {
    const { sentinelPorts, name } = field.servers;
    const sentinels = sentinelPorts.map((port) => ({ host: "127.0.0.1", port }));
    const sentinel = field.node({ port: sentinelPorts[0]! });
    const listeners = async () =>
      String(await sentinel.call("CLIENT", "LIST")).match(/ sub=1 /g)?.length ?? 0;
    assert.equal(await listeners(), 0);
    const client = new Redis({ sentinels, name, failoverDetector: true });
    client.on("error", () => {});
    const engine = redisEngine({ client, replicas: { wait: 1 } });
    try {
      await client.ping();
      await until("it listens", async () => (await listeners()) === 1);
      assert.equal((await engine.tryAcquire(claim("told"), now())).kind, "granted");
      assert.equal((await engine.queue!.enqueue(claim("told"), now())).kind, "queued");
      assert.equal(await listeners(), 1);
    } finally {
      await engine.close();
      client.disconnect();
    }
  });

  it("is looked for by whoever connects meanwhile", async () => {
    const primary = await field.servers.primary();
    crash(primary);
    const refused = nextFailure();
    const connecting = connect(field.topology.url);
    await Promise.race([refused, connecting]);
    await primary.restart();
    await using locks = await connecting;
    await (await locks.acquire("a")).release();
  });
});

/** Resolves when a connection was refused. */
function nextFailure(): Promise<void> {
  return new Promise((resolve) => {
    const hear = (event: unknown) => {
      if ((event as { during: string }).during !== "connection") return;
      channels.failed.unsubscribe(hear);
      resolve();
    };
    channels.failed.subscribe(hear);
  });
}
