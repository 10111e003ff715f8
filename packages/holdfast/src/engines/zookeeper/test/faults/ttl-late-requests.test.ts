// A request that lies in a socket for long, and arrives when the record that it was meant for is gone.
// Its version fits every record: the first grant of each makes version 1 out of version 0.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { Claim, Engine } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import { now } from "../../../test-support/call.fixture.js";
import { claim } from "../../../test-support/claim.fixture.js";
import { until } from "../../../test-support/until.fixture.js";
import { resolveZookeeper } from "../options.js";
import { HoldingRelay, type RequestKind } from "../test/support/holding-relay.fixture.js";
import { fresh, ZookeeperTestServer } from "../test/support/test-server.fixture.js";
import { ZookeeperTtlEngine } from "./engine.js";

const TTL_MS = 60_000;
const PATIENCE_MS = 20_000;

let zookeeper: ZookeeperTestServer;
const closers: (() => Promise<void>)[] = [];

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(async () => {
  await Promise.all(closers.map((close) => close()));
  await zookeeper[Symbol.asyncDispose]();
});

/** As another process would have it. */
function process(hosts = zookeeper.server.hosts): ZookeeperTtlEngine {
  const engine = new ZookeeperTtlEngine(resolveZookeeper({ hosts, hold: "ttl" }));
  closers.push(() => engine.close());
  return engine;
}

/** One whose requests can be held back. */
async function slowProcess(): Promise<[engine: ZookeeperTtlEngine, relay: HoldingRelay]> {
  const relay = await HoldingRelay.start(zookeeper.server.port);
  closers.push(() => relay[Symbol.asyncDispose]());
  return [process(relay.hosts), relay];
}

async function grant(engine: Engine, one: Claim): Promise<bigint> {
  const answer = await engine.tryAcquire(one, now());
  assert.equal(answer.kind, "granted");
  return answer.kind === "granted" ? answer.token : 0n;
}

async function release(engine: Engine, one: Claim): Promise<string> {
  const [answer] = await engine.release([{ ...one, tombstoneMs: 0 }], now(PATIENCE_MS));
  return answer!.kind;
}

/** Sees whoever holds it stand still for its whole ttl. */
function outlive(observer: ZookeeperTtlEngine, resource: string): Promise<void> {
  return observer.age(resource, TTL_MS + 1, now());
}

/** Makes the record and deletes it, a few times. */
async function useIt(engine: Engine, resource: string): Promise<bigint> {
  let last = 0n;
  for (let times = 0; times < 3; times++) {
    const one = claim(resource, { ttlMs: TTL_MS });
    last = await grant(engine, one);
    assert.equal(await release(engine, one), "released");
  }
  return last;
}

interface Lateness {
  readonly what: string;
  readonly kind: RequestKind;
  /** Sent by the late process; gives what it was told in the end. */
  send(engine: ZookeeperTtlEngine, held: Claim, token: bigint): Promise<string>;
  readonly told: string;
}

const requests: readonly Lateness[] = [
  {
    ...{ what: "release", kind: "removal", told: "gone" },
    send: (engine, held) => release(engine, held),
  },
  {
    ...{ what: "renewal", kind: "write", told: "gone" },
    send: async (engine, held) => (await engine.renew([held], now(PATIENCE_MS)))[0]!.kind,
  },
  {
    ...{ what: "release with a tombstone", kind: "write", told: "gone" },
    send: async (engine, held) => {
      const buried = [{ ...held, tombstoneMs: 60_000 }];
      return (await engine.release(buried, now(PATIENCE_MS)))[0]!.kind;
    },
  },
  {
    ...{ what: "revocation", kind: "write", told: "gone" },
    send: (engine, { resource }, token) =>
      engine.revoke({ resource, token, force: false }, now(PATIENCE_MS)),
  },
  {
    ...{ what: "forced revocation", kind: "removal", told: "gone" },
    send: (engine, { resource }, token) =>
      engine.revoke({ resource, token, force: true }, now(PATIENCE_MS)),
  },
  {
    ...{ what: "take-over from a dead holder", kind: "write", told: "busy" },
    send: async (engine, { resource }) => {
      await outlive(engine, resource);
      const one = claim(resource, { ttlMs: TTL_MS });
      return (await engine.tryAcquire(one, now(PATIENCE_MS))).kind;
    },
  },
];

describe("requests that arrive late, on records with a ttl", () => {
  for (const { what, kind, send, told } of requests) {
    it(`a ${what} that arrives late leaves the next record alone`, async () => {
      const resource = fresh();
      const [slow, relay] = await slowProcess();
      const [other, successor] = [process(), process()];
      const [held, next] = [claim(resource, { ttlMs: TTL_MS }), claim(resource)];
      const token = await grant(slow, held);
      relay.holdNext(kind);
      const answer = send(slow, held, token);
      await until("the request is held back", () => relay.holds);
      await outlive(other, resource);
      await useIt(other, resource);
      const later = await grant(successor, next);
      relay.letGo();
      const said = await answer;
      assert.equal((await process().tryAcquire(claim(resource), now())).kind, "busy");
      assert.equal((await successor.renew([next], now()))[0]!.kind, "renewed");
      const { holders } = await other.inspect(resource, now());
      assert.deepEqual(
        holders.map((holder) => [holder.token, holder.revoked]),
        [[later, false]],
      );
      assert.equal(said, told);
      assert.equal(await release(successor, next), "released");
    });
  }

  it("a grant that is written late gets a token greater than all that were given meanwhile", async () => {
    const resource = fresh();
    const [slow, relay] = await slowProcess();
    relay.holdNext("write");
    const one = claim(resource);
    const granted = slow.tryAcquire(one, now(PATIENCE_MS));
    await until("the record is made, and the grant held back", () => relay.holds);
    const last = await useIt(process(), resource);
    // Another record that is as new as the first one was: made, and nobody in it.
    const [second, between] = await slowProcess();
    between.holdNext("write");
    const answer = second.tryAcquire(claim(resource), now(PATIENCE_MS));
    await until("the record is made again", () => between.holds);
    relay.letGo();
    const given = await granted;
    assert.ok(given.kind === "granted" && given.token > last, `after ${last}: ${told(given)}`);
    between.letGo();
    assert.equal((await answer).kind, "busy");
    assert.equal(await release(slow, one), "released");
  });

  it("a record that is made late, when nobody has one, is like any other", async () => {
    const resource = fresh();
    const [slow, relay] = await slowProcess();
    const other = process();
    relay.holdNext("create");
    const one = claim(resource);
    const granted = slow.tryAcquire(one, now(PATIENCE_MS));
    await until("the creation is held back", () => relay.holds);
    const last = await useIt(other, resource);
    relay.letGo();
    const given = await granted;
    assert.ok(given.kind === "granted" && given.token > last, `after ${last}: ${told(given)}`);
    assert.equal(await release(slow, one), "released");
  });

  it("a record that is made late, when there is one already, changes nothing", async () => {
    const resource = fresh();
    const [slow, relay] = await slowProcess();
    const other = process();
    relay.holdNext("create");
    const answer = slow.tryAcquire(claim(resource), now(PATIENCE_MS));
    await until("the creation is held back", () => relay.holds);
    await useIt(other, resource);
    const held = claim(resource);
    await grant(other, held);
    relay.letGo();
    assert.equal((await answer).kind, "busy");
    assert.equal((await other.renew([held], now()))[0]!.kind, "renewed");
    assert.equal(await release(other, held), "released");
  });

  it("a grantId that is granted again is judged from then on, by those too who saw it before", async () => {
    const resource = fresh();
    const [holder, other, observer] = [process(), process(), process()];
    const one = claim(resource, { ttlMs: TTL_MS });
    const first = await grant(holder, one);
    // Not over yet for this one, which does not look again until the grant is another.
    await observer.age(resource, TTL_MS - 100, now());
    await outlive(other, resource);
    await useIt(other, resource);
    // The answer to the first request got lost: core asks again with the same grantId.
    const again = await grant(holder, one);
    assert.ok(again > first);
    await sleep(200);
    assert.equal((await observer.tryAcquire(claim(resource), now())).kind, "busy");
    assert.equal((await holder.renew([one], now()))[0]!.kind, "renewed");
    assert.equal(await release(holder, one), "released");
  });
});

function told(answer: Awaited<ReturnType<Engine["tryAcquire"]>>): string {
  return answer.kind === "granted" ? String(answer.token) : answer.kind;
}

describe("an acquire under way when the connection breaks", { concurrency: 2 }, () => {
  it("is asked again by its grantId, and gets what it was granted", async () => {
    const [engine, relay] = await slowProcess();
    const resource = fresh();
    await useIt(engine, resource);
    const one = claim(resource, { ttlMs: TTL_MS });
    relay.loseAnswerTo("write");
    const token = await grant(engine, one);
    assert.equal(relay.lost, 1);
    const { holders } = await process().inspect(resource, now());
    assert.deepEqual(
      holders.map((holder) => holder.token),
      [token],
    );
  });

  it("leaves its effect unknown, where nobody answers until its time is over", async () => {
    const [engine, relay] = await slowProcess();
    const resource = fresh();
    await useIt(engine, resource);
    relay.loseAnswerTo("write", { isLast: true });
    const asking = engine.tryAcquire(claim(resource), now(1_000));
    const error = await asking.catch((e: unknown) => e);
    assert.ok(error instanceof EngineError, String(error));
    assert.deepEqual([error.effect, error.retryable], ["unknown", true]);
    assert.equal((await process().inspect(resource, now())).holders.length, 1, "it was granted");
  });
});

it("a record that ZooKeeper would not take is refused before it is sent, for good", async () => {
  const engine = process();
  const resource = fresh();
  const wish = { mode: "shared", label: "x".repeat(200_000), ttlMs: TTL_MS } as const;
  const holders = Array.from({ length: 4 }, () => claim(resource, wish));
  for (const holder of holders) await grant(engine, holder);
  const error = await engine.tryAcquire(claim(resource, wish), now()).catch((e: unknown) => e);
  assert.ok(error instanceof EngineError, String(error));
  assert.match(error.message, /bytes with 5 holders.*jute\.maxbuffer/);
  assert.deepEqual([error.effect, error.retryable], ["none", false]);
  const renewed = await engine.renew(holders, now());
  assert.deepEqual(new Set(renewed.map(({ kind }) => kind)), new Set(["renewed"]));
  for (const holder of holders) assert.equal(await release(engine, holder), "released");
});
