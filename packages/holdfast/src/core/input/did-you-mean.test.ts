import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../connect.js";
import { etcdEngine } from "../../engines/etcd/index.js";
import { memoryEngine } from "../../engines/memory/index.js";
import { mysqlEngine } from "../../engines/mysql/index.js";
import { postgresEngine } from "../../engines/postgres/index.js";
import { quorumEngine } from "../../engines/quorum/index.js";
import { redisEngine } from "../../engines/redis/index.js";
import { sqliteEngine } from "../../engines/sqlite/index.js";
import { zookeeperEngine } from "../../engines/zookeeper/index.js";
import { UsageError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { orMeant } from "./did-you-mean.js";

test("orMeant suggests the nearest known word, and nothing if all are far", () => {
  const known = ["ttlMs", "waitMs", "renewEveryMs", "tls", "idleMs"];
  for (const [word, meant] of [
    ["ttl", "ttlMs"],
    ["waitMS", "waitMs"],
    ["wait", "waitMs"],
    ["waitms", "waitMs"],
    ["renewEveryMS", "renewEveryMs"],
    ["renew_every_ms", "renewEveryMs"],
    ["tsl", "tls"],
    ["idle", "idleMs"],
  ] as const) {
    assert.equal(orMeant(word, known), `; did you mean "${meant}"?`);
  }
  for (const word of ["x", "", "patience", "zzz"]) assert.equal(orMeant(word, known), "");
});

test("the error for a misspelt option or URL parameter suggests the right one", async () => {
  await using locks = new Locks(memoryEngine());
  const asks = (attempt: Promise<unknown>, meant: string) =>
    assert.rejects(attempt, (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.ok(error.message.endsWith(`; did you mean "${meant}"?`), error.message);
      return true;
    });
  await asks(locks.acquire("a", { waitMS: 5 } as never), "waitMs");
  await asks(
    locks.once("a", { atMost: 5 } as never, () => 1),
    "atMostMs",
  );
  await asks(locks.acquire("a", { timeoutMs: 5 } as never), "waitMs");
  await asks(locks.acquire("a", { timeout: 5 } as never), "waitMs");
  await asks(locks.tryAcquire("a", { timeoutMs: 5 } as never), "callTimeoutMs");
  await asks(connect("memory:", { default: {} } as never), "defaults");
  await asks(connect("redis://127.0.0.1:1?prefx=a"), "prefix");
  await asks(connect("postgres://127.0.0.1:1/a?shema=b"), "schema");
});

/** Each lacks a value that must be given, because its name is misspelt. */
const MISSPELT: readonly (readonly [string, (locks: Locks) => unknown, string])[] = [
  ["semaphore", (locks) => locks.semaphore("s", { permit: 2 } as never), "permits"],
  ["once", (locks) => locks.once("o", { atMost: 5 } as never, () => 1), "atMostMs"],
  ["revoke", (locks) => locks.revoke("a", { tokn: 5n } as never), "token"],
  ["redisEngine", () => redisEngine({ cleint: {} } as never), "client"],
  ["postgresEngine", () => postgresEngine({ cleint: {} } as never), "client"],
  ["mysqlEngine", () => mysqlEngine({ cleint: {} } as never), "client"],
  ["quorumEngine", () => quorumEngine({ node: [] } as never), "nodes"],
  ["etcdEngine", () => etcdEngine({ endpoint: "a" } as never), "endpoints"],
  ["zookeeperEngine", () => zookeeperEngine({ host: "a" } as never), "hosts"],
  ["sqliteEngine", () => sqliteEngine({ pat: "a" } as never), "path"],
];

for (const [name, call, meant] of MISSPELT) {
  test(`a misspelt option that must be given is suggested, and not only missed: ${name}`, async () => {
    await using locks = new Locks(memoryEngine());
    await assert.rejects(
      async () => await call(locks),
      (error) => {
        assert.ok(error instanceof UsageError, String(error));
        assert.ok(error.message.endsWith(`; did you mean "${meant}"?`), error.message);
        return true;
      },
    );
  });
}

/** An option that belongs elsewhere, and what the refusal says about its place. */
const MISPLACED: readonly (readonly [string, () => unknown, string])[] = [
  [
    "connect, ttlMs",
    () => connect("memory:", { ttlMs: 5 } as never),
    "write { defaults: { ttlMs } }",
  ],
  [
    "new Locks, waitMs",
    () => new Locks(memoryEngine(), { waitMs: 5 } as never),
    "write { defaults: { waitMs } }",
  ],
  [
    "connect, handOvers",
    () => connect("memory:", { handOvers: 5 } as never),
    "write { cohort: { handOvers } }",
  ],
  [
    "connect, prefix",
    () => connect("redis://127.0.0.1:1", { prefix: "a" } as never),
    "it is an option of the engine: write ?prefix= in the URL",
  ],
  [
    "connect, schema",
    () => connect("postgres://127.0.0.1:1/d", { schema: "a" } as never),
    "it is an option of the engine: write ?schema= in the URL",
  ],
  [
    "new Locks, prefix",
    () => new Locks(memoryEngine(), { prefix: "a" } as never),
    "it is an option of the engine: give it to the function that makes the engine",
  ],
  ["redisEngine", () => redisEngine({ url: "redis://h" } as never), "a URL goes to connect(url)"],
  [
    "postgresEngine",
    () => postgresEngine({ connectionString: "postgres://h" } as never),
    "a URL goes to connect(url)",
  ],
  ["mysqlEngine", () => mysqlEngine({ uri: "mysql://h" } as never), "a URL goes to connect(url)"],
  ["etcdEngine", () => etcdEngine({ url: "etcd://h" } as never), "a URL goes to connect(url)"],
];

for (const [name, call, place] of MISPLACED) {
  test(`the error for an option in the wrong place says where it belongs: ${name}`, async () => {
    await assert.rejects(
      async () => await call(),
      (error) => {
        assert.ok(error instanceof UsageError, String(error));
        assert.ok(error.message.endsWith(`; ${place}`), error.message);
        return true;
      },
    );
  });
}

for (const url of [
  "postgres://127.0.0.1:1/a?sslmode=require",
  "postgres://127.0.0.1:1/a?ssl=true",
  "mysql://127.0.0.1:1/a?ssl-mode=REQUIRED",
  "mysql://127.0.0.1:1/a?sslMode=REQUIRED",
  "redis://127.0.0.1:1?ssl=true",
  "zookeeper://127.0.0.1:1?ssl=true",
]) {
  test(`${url} is refused with the way to ask for TLS`, async () => {
    await assert.rejects(connect(url), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, /has no parameter "ssl.*; for TLS write tls=true$/);
      return true;
    });
  });
}
