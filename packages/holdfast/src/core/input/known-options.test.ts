import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../connect.js";
import { etcdEngine } from "../../engines/etcd/index.js";
import { memoryEngine } from "../../engines/memory/index.js";
import * as mysql from "../../engines/mysql/index.js";
import * as postgres from "../../engines/postgres/index.js";
import { init as initQuorum, quorumEngine } from "../../engines/quorum/index.js";
import { redisEngine } from "../../engines/redis/index.js";
import { sqliteEngine } from "../../engines/sqlite/index.js";
import { zookeeperEngine } from "../../engines/zookeeper/index.js";
import { UsageError } from "../../errors.js";
import { init } from "../../init.js";
import { Locks } from "../../locks.js";
import { exponential, fixed } from "../acquiring/retry.js";
import type { Lease } from "../holding/lease.js";

// An option that nobody has. The client is never called.
const MISSPELT = { tll: 5 } as never;
const NODES = ["a", "b", "c"].map((name) => ({ name, client: {} as never }));

/** Every public function that takes options, and one of its known options. */
const CALLS: readonly (readonly [
  string,
  (locks: Locks, lease: Lease, joined: Lease) => unknown,
  RegExp,
])[] = [
  ["connect to a URL", () => connect("memory:", MISSPELT), /drift/],
  ["connect to what is not there", () => connect("redis://127.0.0.1:1", MISSPELT), /drift/],
  ["connect to an engine", () => connect(memoryEngine(), MISSPELT), /drift/],
  ["defaults", () => connect("memory:", { defaults: MISSPELT }), /ttlMs/],
  ["cohort", () => connect("memory:", { cohort: MISSPELT }), /handOvers/],
  ["new Locks", () => new Locks(memoryEngine(), MISSPELT), /drift/],
  ["init", () => init("memory:", MISSPELT), /wait/],
  ["acquire", (locks) => locks.acquire("a", MISSPELT), /waitMs/],
  ["tryAcquire", (locks) => locks.tryAcquire("a", MISSPELT), /ttlMs/],
  ["run", (locks) => locks.run("a", MISSPELT, () => 1), /waitMs/],
  [
    "once",
    (locks) => locks.once("a", { atMostMs: 5, ...(MISSPELT as object) }, () => 1),
    /atLeast/,
  ],
  ["list", (locks) => locks.list(MISSPELT).next(), /match/],
  ["revoke", (locks) => locks.revoke("a", { token: 1n, ...(MISSPELT as object) }), /force/],
  ["renew", (_, lease) => lease.renew(MISSPELT), /ttlMs/],
  ["renew of a joined lease", (_, __, joined) => joined.renew(MISSPELT), /ttlMs/],
  ["rwLock", (locks) => locks.rwLock("a", MISSPELT), /waitMs/],
  ["read", (locks) => locks.rwLock("a").read(MISSPELT), /signal/],
  ["tryWrite", (locks) => locks.rwLock("a").tryWrite(MISSPELT), /signal/],
  ["semaphore", (locks) => locks.semaphore("a", { permits: 1, ...(MISSPELT as object) }), /waitMs/],
  ["a permit", (locks) => locks.semaphore("a", { permits: 1 }).acquire(MISSPELT), /signal/],
  ["a run", (locks) => locks.semaphore("a", { permits: 1 }).run(MISSPELT, () => 1), /signal/],
  ["fixed", () => fixed({ delayMs: 5, ...(MISSPELT as object) }), /times/],
  ["exponential", () => exponential(MISSPELT), /factor/],
  ["memoryEngine", () => memoryEngine(MISSPELT), /store/],
  ["sqliteEngine", () => sqliteEngine(MISSPELT), /path/],
  ["redisEngine", () => redisEngine(MISSPELT), /prefix/],
  ["replicas", () => redisEngine({ client: {} as never, replicas: MISSPELT }), /wait/],
  ["quorumEngine", () => quorumEngine({ nodes: NODES, ...(MISSPELT as object) }), /writeQuorum/],
  ["init of a quorum", () => initQuorum({ nodes: NODES, ...(MISSPELT as object) }), /writeQuorum/],
  ["postgresEngine", () => postgres.postgresEngine(MISSPELT), /schema/],
  ["init of postgres", () => postgres.init({} as never, MISSPELT), /shedlock/],
  ["a fence of postgres", () => postgres.fenceInTransaction({} as never, "", MISSPELT), /schema/],
  ["a claim of postgres", () => postgres.claimInTransaction({} as never, "", MISSPELT), /waitMs/],
  ["mysqlEngine", () => mysql.mysqlEngine(MISSPELT), /prefix/],
  ["init of mysql", () => mysql.init({} as never, MISSPELT), /shedlock/],
  ["a fence of mysql", () => mysql.fenceInTransaction({} as never, "", MISSPELT), /prefix/],
  ["a claim of mysql", () => mysql.claimInTransaction({} as never, "", MISSPELT), /waitMs/],
  ["etcdEngine", () => etcdEngine({ endpoints: ["a"], ...(MISSPELT as object) }), /prefix/],
  ["zookeeperEngine", () => zookeeperEngine({ hosts: "a", ...(MISSPELT as object) }), /chroot/],
];

for (const [name, call, knows] of CALLS) {
  test(`a misspelt option is named in the error, with the known ones: ${name}`, async () => {
    await using locks = new Locks(memoryEngine());
    await locks.run("held", async (lease) => {
      const joined = await locks.acquire("held", { reentrant: true });
      const attempt = async () => await call(locks, lease, joined);
      await assert.rejects(attempt, (error) => {
        assert.ok(error instanceof UsageError, `it threw ${String(error)}`);
        assert.match(error.message, /has no option "tll"; it knows /);
        assert.match(error.message.split("it knows")[1]!, knows);
        return true;
      });
    });
  });
}

test("options that are not an object are refused, and shown", async () => {
  await using locks = new Locks(memoryEngine());
  const wrong = 5 as never;
  const calls = [
    () => connect("memory:", wrong),
    () => locks.acquire("a", wrong),
    () => locks.tryAcquire("a", wrong),
    () => locks.tryAcquire("a", null as never),
    () => locks.once("a", wrong, () => 1),
    async () => locks.rwLock("a", wrong),
    () => locks.rwLock("a").read(wrong),
    () => locks.run("a", (lease) => lease.renew(wrong)),
  ];
  for (const call of calls) {
    await assert.rejects(call, (error) => {
      assert.ok(error instanceof UsageError, `${call} threw ${String(error)}`);
      assert.match(error.message, /object of options, got (5|null)/);
      return true;
    });
  }
});

test("once refuses options that it decides itself", async () => {
  await using locks = new Locks(memoryEngine());
  for (const name of ["ttlMs", "renew", "graceMs", "fair", "mode"]) {
    const options = { atMostMs: 5_000, [name]: true };
    await assert.rejects(
      locks.once("a", options as never, () => 1),
      /once has no option/,
    );
  }
});
