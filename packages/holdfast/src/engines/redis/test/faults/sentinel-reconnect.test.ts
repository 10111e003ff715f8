import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { SentinelReconnect } from "../../clients/node-redis/sentinel-reconnect.js";

/** A client whose connection the test sets. */
class Client {
  isOpen = true;
  isConnected = true;
  getMasterNode(): unknown {
    return this.isConnected ? { host: "127.0.0.1", port: 6379 } : undefined;
  }
}

describe("a call while the connection to the primary is lost", () => {
  it("does not wait if the client is connected, or closed for good", () => {
    const client = new Client();
    const reconnecting = new SentinelReconnect(() => client);
    assert.equal(reconnecting.wait(), null);
    client.isOpen = client.isConnected = false;
    assert.equal(reconnecting.wait(), null);
  });

  it("waits until the client is connected again, and later calls follow it in order", async () => {
    const client = new Client();
    const reconnecting = new SentinelReconnect(() => client);
    const order: number[] = [];
    client.isConnected = false;
    const first = reconnecting.wait()?.then(() => order.push(1));
    await sleep(50);
    client.isConnected = true;
    const second = reconnecting.wait()?.then(() => order.push(2));
    assert.ok(first && second, "both wait");
    await Promise.all([first, second]);
    assert.deepEqual(order, [1, 2]);
    assert.equal(reconnecting.wait(), null);
  });

  it("waits a second at most, and only once for each loss", async () => {
    await soon(3_000, async () => {
      const client = new Client();
      const reconnecting = new SentinelReconnect(() => client);
      client.isConnected = false;
      const tookMs = await timed(async () => reconnecting.wait());
      assert.ok(tookMs > 900, `it took ${tookMs} ms`);
      assert.equal(reconnecting.wait(), null, "now the client must search for another primary");
      client.isConnected = true;
      assert.equal(reconnecting.wait(), null);
      client.isConnected = false;
      assert.notEqual(reconnecting.wait(), null, "it must wait again after the next loss");
      client.isConnected = true;
      return tookMs;
    });
  });
});
