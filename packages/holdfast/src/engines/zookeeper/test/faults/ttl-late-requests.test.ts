// A relay holds a request back until the record that it was meant for is gone. Its version fits
// every record, because the first grant of each record makes version 1 of version 0.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Claim, Engine } from "../../../../engine.js";
import { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { resolveZookeeper } from "../../options.js";
import { ZookeeperTtlEngine } from "../../ttl/engine.js";
import { HoldingRelay, type RequestKind } from "../support/holding-relay.fixture.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

const TTL_MS = 60_000;
const TIMEOUT_MS = 20_000;

let zookeeper: ZookeeperTestServer;
const closers: (() => Promise<void>)[] = [];

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(async () => {
  await Promise.all(closers.map((close) => close()));
  await zookeeper[Symbol.asyncDispose]();
});

/** An engine as in another process. */
function startProcess(hosts = zookeeper.server.hosts): ZookeeperTtlEngine {
  const engine = new ZookeeperTtlEngine(resolveZookeeper({ hosts, hold: "ttl" }));
  closers.push(() => engine.close());
  return engine;
}

/** An engine whose requests can be held back. */
async function slowProcess(): Promise<[engine: ZookeeperTtlEngine, relay: HoldingRelay]> {
  const relay = await HoldingRelay.start(zookeeper.server.port);
  closers.push(() => relay[Symbol.asyncDispose]());
  return [startProcess(relay.hosts), relay];
}

async function grant(engine: Engine, one: Claim): Promise<bigint> {
  const answer = await engine.tryAcquire(one, now());
  assert.equal(answer.kind, "granted");
  return answer.kind === "granted" ? answer.token : 0n;
}

async function release(engine: Engine, one: Claim): Promise<string> {
  const [answer] = await engine.release([{ ...one, tombstoneMs: 0 }], now(TIMEOUT_MS));
  return answer!.kind;
}

/** The observer has seen the holder unchanged for its whole ttl. */
function outlive(observer: ZookeeperTtlEngine, resource: string): Promise<void> {
  return observer.age(resource, TTL_MS + 1, now());
}

/** Makes the record and deletes it, three times. Returns the last token. */
async function makeAndDelete(engine: Engine, resource: string): Promise<bigint> {
  let last = 0n;
  for (let times = 0; times < 3; times++) {
    const one = claim(resource, { ttlMs: TTL_MS });
    last = await grant(engine, one);
    assert.equal(await release(engine, one), "released");
  }
  return last;
}

interface LateRequest {
  readonly what: string;
  readonly kind: RequestKind;
  /** Sends the request, and returns the kind of its answer. */
  send(engine: ZookeeperTtlEngine, held: Claim, token: bigint): Promise<string>;
  readonly expected: string;
}

const requests: readonly LateRequest[] = [
  {
    ...{ what: "release", kind: "removal", expected: "gone" },
    send: (engine, held) => release(engine, held),
  },
  {
    ...{ what: "renewal", kind: "write", expected: "gone" },
    send: async (engine, held) => (await engine.renew([held], now(TIMEOUT_MS)))[0]!.kind,
  },
  {
    ...{ what: "release with a tombstone", kind: "write", expected: "gone" },
    send: async (engine, held) => {
      const buried = [{ ...held, tombstoneMs: 60_000 }];
      return (await engine.release(buried, now(TIMEOUT_MS)))[0]!.kind;
    },
  },
  {
    ...{ what: "revocation", kind: "write", expected: "gone" },
    send: (engine, { resource }, token) =>
      engine.revoke({ resource, token, force: false }, now(TIMEOUT_MS)),
  },
  {
    ...{ what: "forced revocation", kind: "removal", expected: "gone" },
    send: (engine, { resource }, token) =>
      engine.revoke({ resource, token, force: true }, now(TIMEOUT_MS)),
  },
  {
    ...{ what: "take-over from a dead holder", kind: "write", expected: "busy" },
    send: async (engine, { resource }) => {
      await outlive(engine, resource);
      const one = claim(resource, { ttlMs: TTL_MS });
      return (await engine.tryAcquire(one, now(TIMEOUT_MS))).kind;
    },
  },
];

describe("requests that arrive late, on records with a ttl", () => {
  for (const { what, kind, send, expected } of requests) {
    it(`a ${what} that arrives late leaves the next record alone`, async () => {
      const resource = fresh();
      const [slow, relay] = await slowProcess();
      const [other, successor] = [startProcess(), startProcess()];
      const [held, next] = [claim(resource, { ttlMs: TTL_MS }), claim(resource)];
      const token = await grant(slow, held);
      relay.holdNext(kind);
      const answer = send(slow, held, token);
      await until("the request is held back", () => relay.holds);
      await outlive(other, resource);
      await makeAndDelete(other, resource);
      const later = await grant(successor, next);
      relay.deliver();
      const kindOfAnswer = await answer;
      assert.equal((await startProcess().tryAcquire(claim(resource), now())).kind, "busy");
      assert.equal((await successor.renew([next], now()))[0]!.kind, "renewed");
      const { holders } = await other.inspect(resource, now());
      assert.deepEqual(
        holders.map((holder) => [holder.token, holder.revoked]),
        [[later, false]],
      );
      assert.equal(kindOfAnswer, expected);
      assert.equal(await release(successor, next), "released");
    });
  }

  it("a grant that is written late gets a token greater than all tokens that were given in between", async () => {
    const resource = fresh();
    const [slow, relay] = await slowProcess();
    relay.holdNext("write");
    const one = claim(resource);
    const granted = slow.tryAcquire(one, now(TIMEOUT_MS));
    await until("the record is made, and the grant held back", () => relay.holds);
    const last = await makeAndDelete(startProcess(), resource);
    // Another record that is as new as the first one was: it exists, and nobody holds it.
    const [second, between] = await slowProcess();
    between.holdNext("write");
    const answer = second.tryAcquire(claim(resource), now(TIMEOUT_MS));
    await until("the record is made again", () => between.holds);
    relay.deliver();
    const given = await granted;
    assert.ok(
      given.kind === "granted" && given.token > last,
      `after ${last}: ${describeAnswer(given)}`,
    );
    between.deliver();
    assert.equal((await answer).kind, "busy");
    assert.equal(await release(slow, one), "released");
  });

  it("a record that is made late, when there is none, works like any other", async () => {
    const resource = fresh();
    const [slow, relay] = await slowProcess();
    const other = startProcess();
    relay.holdNext("create");
    const one = claim(resource);
    const granted = slow.tryAcquire(one, now(TIMEOUT_MS));
    await until("the creation is held back", () => relay.holds);
    const last = await makeAndDelete(other, resource);
    relay.deliver();
    const given = await granted;
    assert.ok(
      given.kind === "granted" && given.token > last,
      `after ${last}: ${describeAnswer(given)}`,
    );
    assert.equal(await release(slow, one), "released");
  });

  it("a creation that arrives late, when there is a record, changes nothing", async () => {
    const resource = fresh();
    const [slow, relay] = await slowProcess();
    const other = startProcess();
    relay.holdNext("create");
    const answer = slow.tryAcquire(claim(resource), now(TIMEOUT_MS));
    await until("the creation is held back", () => relay.holds);
    await makeAndDelete(other, resource);
    const held = claim(resource);
    await grant(other, held);
    relay.deliver();
    assert.equal((await answer).kind, "busy");
    assert.equal((await other.renew([held], now()))[0]!.kind, "renewed");
    assert.equal(await release(other, held), "released");
  });

  it("a grantId that is granted again lives for a whole ttl, also for an observer of the first grant", async () => {
    const resource = fresh();
    const [holder, other, observer] = [startProcess(), startProcess(), startProcess()];
    const one = claim(resource, { ttlMs: TTL_MS });
    const first = await grant(holder, one);
    // Not over yet for this observer, which does not look again before the second grant.
    await observer.age(resource, TTL_MS - 100, now());
    await outlive(other, resource);
    await makeAndDelete(other, resource);
    // Core repeats a claim with the same grantId when its answer was lost.
    const again = await grant(holder, one);
    assert.ok(again > first);
    await sleep(200);
    assert.equal((await observer.tryAcquire(claim(resource), now())).kind, "busy");
    assert.equal((await holder.renew([one], now()))[0]!.kind, "renewed");
    assert.equal(await release(holder, one), "released");
  });
});

function describeAnswer(answer: Awaited<ReturnType<Engine["tryAcquire"]>>): string {
  return answer.kind === "granted" ? String(answer.token) : answer.kind;
}

describe("an acquire under way when the connection breaks", { concurrency: 2 }, () => {
  it("is repeated with the same grantId, and gets the grant that was written", async () => {
    const [engine, relay] = await slowProcess();
    const resource = fresh();
    await makeAndDelete(engine, resource);
    const one = claim(resource, { ttlMs: TTL_MS });
    relay.loseAnswerTo("write");
    const token = await grant(engine, one);
    assert.equal(relay.lost, 1);
    const { holders } = await startProcess().inspect(resource, now());
    assert.deepEqual(
      holders.map((holder) => holder.token),
      [token],
    );
  });

  it("fails with effect unknown, when no server answers in time", async () => {
    const [engine, relay] = await slowProcess();
    const resource = fresh();
    await makeAndDelete(engine, resource);
    relay.loseAnswerTo("write", { isLast: true });
    const asking = engine.tryAcquire(claim(resource), now(1_000));
    const error = await asking.catch((e: unknown) => e);
    assert.ok(error instanceof EngineError, String(error));
    assert.deepEqual([error.effect, error.retryable], ["unknown", true]);
    assert.equal(
      (await startProcess().inspect(resource, now())).holders.length,
      1,
      "it was granted",
    );
  });
});

it("a claim whose record would be too large for ZooKeeper is refused before it is sent", async () => {
  const engine = startProcess();
  const resource = fresh();
  const terms = { mode: "shared", label: "x".repeat(200_000), ttlMs: TTL_MS } as const;
  const holders = Array.from({ length: 4 }, () => claim(resource, terms));
  for (const holder of holders) await grant(engine, holder);
  const error = await engine.tryAcquire(claim(resource, terms), now()).catch((e: unknown) => e);
  assert.ok(error instanceof EngineError, String(error));
  assert.match(error.message, /bytes with 5 holders.*jute\.maxbuffer/);
  assert.deepEqual([error.effect, error.retryable], ["none", false]);
  const renewed = await engine.renew(holders, now());
  assert.deepEqual(new Set(renewed.map(({ kind }) => kind)), new Set(["renewed"]));
  for (const holder of holders) assert.equal(await release(engine, holder), "released");
});
