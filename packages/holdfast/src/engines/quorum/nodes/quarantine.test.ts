// All three nodes must agree, and one of them is made to forget, in several ways. While that node does
// not count, nothing is granted; after its quarantine, everything works as before.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisOptions } from "@holdfast/servers";
import { EngineError, UsageError } from "../../../errors.js";
import { channels, type Events } from "../../../events.js";
import { Locks } from "../../../locks.js";
import { init, type QuorumEngineOptions, quorumEngine } from "../index.js";
import { TestQuorum } from "../test/support/test-quorum.fixture.js";

const MAX_TTL_MS = 4_000;
const TERMS = { maxTtlMs: MAX_TTL_MS, writeQuorum: 3 };
const TTL = { ttlMs: 3_000 };
const CERTIFICATE = "{holdfast:}:certificate";

interface Way {
  readonly name: string;
  readonly options?: RedisOptions;
  forget(quorum: TestQuorum): Promise<unknown>;
}

const WAYS: readonly Way[] = [
  { name: "FLUSHALL", forget: ({ admins }) => admins[0]!.flushall() },
  { name: "a restart without persistence", forget: ({ servers }) => servers[0]!.restart() },
  {
    name: "kill -9 with an AOF that is written every second",
    options: { args: ["--appendonly", "yes", "--appendfsync", "everysec"] },
    forget: ({ servers }) => servers[0]!.restart(),
  },
  {
    name: "a restart from an older RDB",
    forget: async ({ servers, admins }) => {
      await admins[0]!.save();
      await servers[0]!.restart();
    },
  },
  {
    name: "REPLICAOF, and promotion back",
    options: { args: ["--repl-diskless-sync-delay", "0"] },
    forget: async ({ servers, admins }) => {
      await admins[0]!.replicaof("127.0.0.1", servers[1]!.port);
      const isLinked = async () =>
        /master_link_status:up/.test(await admins[0]!.info("replication"));
      while (!(await isLinked())) await sleep(20);
      await admins[0]!.replicaof("NO", "ONE");
    },
  },
];

describe("a node that forgot is put in quarantine until it counts again", {
  concurrency: 2,
}, () => {
  for (const { name, options, forget } of WAYS) {
    it(name, async () => {
      await using quorum = await TestQuorum.start(3, TERMS, options);
      const locks = await quorum.locks();
      await (await patiently(locks)).release();
      const states: string[] = [];
      const hear = (message: unknown) => {
        const { node, state } = message as Events["node"];
        if (node === quorum.names[0]) states.push(state);
      };
      channels.node.subscribe(hear);
      await forget(quorum);
      const failure = await refusal(locks);
      assert.match(failure.message, /quarantine/);
      assert.ok(failure.message.includes(quorum.names[0]!));
      const lease = await patiently(locks);
      assert.equal(await lease.release(), "released");
      channels.node.unsubscribe(hear);
      assert.deepEqual([...new Set(states)].slice(0, 2), ["quarantined", "certified"]);
    });
  }
});

describe("a new quorum", { concurrency: 2 }, () => {
  it("new nodes grant nothing before their first quarantine is over", async () => {
    await using quorum = await TestQuorum.startFresh(3, TERMS);
    const locks = await quorum.locks();
    const failure = await refusal(locks);
    assert.match(failure.message, /npx @holdfast\/cli init/);
    assert.equal(failure.effect, "none");
    await (await patiently(locks)).release();
  });

  it("init lets new nodes count at once, and a second init is harmless", async () => {
    await using quorum = await TestQuorum.startFresh(3, { maxTtlMs: 60_000 });
    await quorum.init();
    await quorum.init();
    const locks = await quorum.locks();
    await (await locks.acquire("a")).release();
  });

  it("init does not shorten the quarantine of one node among others", async () => {
    await using quorum = await TestQuorum.start(3, { maxTtlMs: 60_000, writeQuorum: 3 });
    const locks = await quorum.locks();
    await quorum.admins[0]!.flushall();
    await refusal(locks);
    await quorum.init();
    assert.match((await refusal(locks)).message, /quarantine/);
  });

  it("init needs all nodes, and leaves a quorum with other members alone", async () => {
    await using quorum = await TestQuorum.start(4, { maxTtlMs: 60_000 });
    const { nodes } = quorum.options(quorum.admins);
    await assert.rejects(init({ nodes: nodes.slice(0, 3), maxTtlMs: 60_000 }), UsageError);
    await quorum.servers[3]!.stop();
    await assert.rejects(quorum.init(), EngineError);
  });

  it("init refuses two names of one server", async () => {
    await using quorum = await TestQuorum.startFresh(2, TERMS);
    await assert.rejects(init(twice(quorum)), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, /a and b are one server/);
      return true;
    });
    const certificates = quorum.admins.map((admin) => admin.exists(CERTIFICATE));
    assert.deepEqual(await Promise.all(certificates), [0, 0]);
  });

  it("one server under two names is no majority, even after a quarantine", async () => {
    await using quorum = await TestQuorum.startFresh(2, TERMS);
    const locks = new Locks(quorumEngine({ ...twice(quorum), maxTtlMs: MAX_TTL_MS }));
    const { message } = await refusal(locks);
    assert.match(message, /a is the same server as b/);
    await certified(quorum, 1);
    // One server is not a majority, so it is not certified.
    assert.equal(await quorum.admins[0]!.exists(CERTIFICATE), 0);
    await assert.rejects(locks.acquire("a", TTL), /the same server/);
    await locks.close();
  });

  it("a client with another member list gets an error that shows both lists", async () => {
    await using quorum = await TestQuorum.start(4, { maxTtlMs: 60_000 });
    const { nodes } = quorum.options(quorum.admins);
    const few = nodes.slice(0, 3);
    const locks = new Locks(quorumEngine({ nodes: few, maxTtlMs: 60_000 }));
    const error = await locks.acquire("a").then(
      () => assert.fail("a client with three members was granted a lock by four"),
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof UsageError, String(error));
    const names = (list: readonly string[]) => [...list].sort().join(",");
    assert.ok(error.message.includes(`"members ${names(quorum.names)};`), error.message);
    assert.ok(error.message.includes(`"members ${names(few.map(({ name }) => name))};`));
    assert.ok(await (await quorum.locks()).tryAcquire("a"), "and has left nothing behind");
    await locks.close();
  });
});

it("idle clients certify three of five nodes that restart one after the other", async () => {
  await using quorum = await TestQuorum.start(5, { maxTtlMs: MAX_TTL_MS });
  const locks = await quorum.locks();
  for (const node of [0, 1, 2]) {
    await quorum.servers[node]!.restart();
    await certified(quorum, node);
  }
  await (await locks.acquire("a", { ...TTL, waitMs: 20_000 })).release();
});

/** Waits for the certificate. The node came back empty, so only a client of this test can write one. */
async function certified({ admins }: TestQuorum, node: number): Promise<void> {
  for (let looks = 0; (await admins[node]!.exists(CERTIFICATE)) === 0; looks++) {
    assert.ok(looks < 600, `node ${node} is not certified`);
    await sleep(100);
  }
}

/** Options of a quorum of three names that has one server under two of them. */
function twice({ admins: [one, other] }: TestQuorum): QuorumEngineOptions {
  const clients = { a: one!, b: one!, c: other! };
  return { nodes: Object.entries(clients).map(([name, client]) => ({ name, client })) };
}

/** The error of an acquire that cannot be granted now. */
async function refusal(locks: Locks): Promise<EngineError> {
  const error = await locks.acquire("a", { ...TTL, waitMs: 2_000 }).then(
    () => assert.fail("granted although a node does not count"),
    (reason: unknown) => reason,
  );
  // Right after a restart the connection itself may be missing for a moment.
  if (error instanceof EngineError && !/quarantine/.test(error.message)) {
    await sleep(20);
    return refusal(locks);
  }
  assert.ok(error instanceof EngineError, String(error));
  return error;
}

function patiently(locks: Locks) {
  return locks.acquire("a", { ...TTL, waitMs: 60_000, retry: Array(1_000).fill(50) });
}
