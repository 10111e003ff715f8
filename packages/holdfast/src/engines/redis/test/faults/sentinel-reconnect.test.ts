import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { soon, timed } from "../../../../test-support/soon.fixture.js";
import { Comeback } from "../../clients/sentinel-reconnect.js";

/** A client whose connection comes and goes as it is told. */
class Client {
  isOpen = true;
  isThere = true;
  getMasterNode(): unknown {
    return this.isThere ? { host: "127.0.0.1", port: 6379 } : undefined;
  }
}

describe("a call while the connection to the primary is away", () => {
  it("does not wait where the connection is there, or was closed for good", () => {
    const client = new Client();
    const comeback = new Comeback(() => client);
    assert.equal(comeback.wait(), null);
    client.isOpen = client.isThere = false;
    assert.equal(comeback.wait(), null);
  });

  it("waits until it is back, and those that come meanwhile go on after it", async () => {
    const client = new Client();
    const comeback = new Comeback(() => client);
    const order: number[] = [];
    client.isThere = false;
    const first = comeback.wait()?.then(() => order.push(1));
    await sleep(50);
    client.isThere = true;
    const second = comeback.wait()?.then(() => order.push(2));
    assert.ok(first && second, "both wait");
    await Promise.all([first, second]);
    assert.deepEqual(order, [1, 2]);
    assert.equal(comeback.wait(), null);
  });

  it("waits a second at most, and once for as long as it is away", async () => {
    await soon(3_000, async () => {
      const client = new Client();
      const comeback = new Comeback(() => client);
      client.isThere = false;
      const tookMs = await timed(async () => comeback.wait());
      assert.ok(tookMs > 900, `it took ${tookMs} ms`);
      assert.equal(comeback.wait(), null, "now the client must look for another primary");
      client.isThere = true;
      assert.equal(comeback.wait(), null);
      client.isThere = false;
      assert.notEqual(comeback.wait(), null, "the next time it is away");
      client.isThere = true;
      return tookMs;
    });
  });
});
