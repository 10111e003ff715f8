import assert from "node:assert/strict";
import { test } from "node:test";
import { createClient } from "redis";
import { connect } from "../../connect.js";
import { etcdEngine } from "../../engines/etcd/index.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import * as mysql from "../../engines/mysql/index.js";
import * as postgres from "../../engines/postgres/index.js";
import { init as initQuorum, quorumEngine } from "../../engines/quorum/index.js";
import { redisEngine } from "../../engines/redis/index.js";
import { sqliteEngine } from "../../engines/sqlite/index.js";
import { zookeeperEngine } from "../../engines/zookeeper/index.js";
import { UsageError } from "../../errors.js";
import { init } from "../../init.js";
import { Locks } from "../../locks.js";

const URL_WITH_SECRET = "postgres://app:s3cr3t@127.0.0.1:1/db";

/** Objects that look like clients. Nothing may call them, and their content is secret. */
class Pool {
  readonly options = { password: "s3cr3t" };
  readonly password = "s3cr3t";
  readonly totalCount = 0;
  connect(): void {}
  query(): void {}
  on(): void {}
}
class MysqlPool {
  readonly password = "s3cr3t";
  getConnection(): void {}
  query(): void {}
}
class Redis {
  readonly password = "s3cr3t";
  evalsha(): void {}
  duplicate(): void {}
}
class NodeRedis {
  readonly password = "s3cr3t";
  withCommandOptions(): void {}
}

type Call = (given: never) => unknown;
const [pg, my] = [postgres, mysql];

/** A function, its wrong argument, and the text of the refusal. */
const REFUSED: readonly (readonly [string, Call, unknown, RegExp])[] = [
  ["connect", connect, { url: URL_WITH_SECRET }, /object with url; .*connect\(url\)/],
  ["connect", connect, new Redis(), /class Redis; .*redisEngine\(\{ client \}\)/],
  ["connect", connect, new NodeRedis(), /redisEngine\(\{ client \}\)/],
  ["connect", connect, new Pool(), /class Pool; .*postgresEngine\(\{ client \}\)/],
  ["connect", connect, new MysqlPool(), /mysqlEngine\(\{ client \}\)/],
  ["connect", connect, new MemoryStore(), /class MemoryStore/],
  ["connect", connect, [URL_WITH_SECRET], /got a list/],
  ["connect", connect, "memory://x", /memory: takes nothing after the colon, got "\/\/x"/],
  ["connect", connect, Promise.resolve(new Pool()), /got a promise; await it/],
  ["connect", connect, undefined, /got nothing/],
  ["init", init, new Pool(), /init takes a URL, got an object of class Pool/],
  ["new Locks", (x) => new Locks(x), URL_WITH_SECRET, /takes an engine, .*connect\(url\)/],
  ["new Locks", (x) => new Locks(x), new Pool(), /postgresEngine\(\{ client \}\)/],
  ["new Locks", (x) => new Locks(x), undefined, /takes an engine, .*got nothing/],
  ["redisEngine", redisEngine, undefined, /like redisEngine\(\{ client \}\), got nothing/],
  ["redisEngine", redisEngine, new Redis(), /write redisEngine\(\{ client \}\)/],
  ["redisEngine", redisEngine, new NodeRedis(), /write redisEngine\(\{ client \}\)/],
  ["redisEngine", redisEngine, URL_WITH_SECRET, /got a string/],
  ["redisEngine", redisEngine, {}, /client must be .*got nothing/],
  ["redisEngine", redisEngine, { client: new Pool() }, /client must be .*class Pool/],
  ["redisEngine", redisEngine, { foo: 1 }, /it knows client, prefix/],
  ["postgresEngine", pg.postgresEngine, undefined, /like postgresEngine\(\{ client \}\)/],
  ["postgresEngine", pg.postgresEngine, new Pool(), /write postgresEngine\(\{ client \}\)/],
  ["postgresEngine", pg.postgresEngine, {}, /client must be .*got nothing/],
  ["postgresEngine", pg.postgresEngine, { client: URL_WITH_SECRET }, /client must be .*a string/],
  ["postgresEngine", pg.postgresEngine, { foo: 1 }, /it knows client, schema/],
  ["postgresEngine", pg.postgresEngine, { client: createClient() }, /got .* class RedisClient$/],
  ["init", pg.init, URL_WITH_SECRET, /client must be .*a string.*init\(url\)/],
  ["init", pg.init, undefined, /client must be .*got nothing/],
  ["a fence", (x) => pg.fenceInTransaction(x, "exclusive:1:a"), URL_WITH_SECRET, /client must be/],
  ["a fence", (x) => pg.fenceInTransaction(x, "exclusive:1:a"), undefined, /client must be/],
  ["a claim", (x) => pg.claimInTransaction(x, "a"), undefined, /client must be/],
  ["a claim", (x) => pg.claimInTransaction(x, "a"), new Pool(), /a pool has no transaction/],
  ["mysqlEngine", my.mysqlEngine, undefined, /like mysqlEngine\(\{ client \}\)/],
  ["mysqlEngine", my.mysqlEngine, new MysqlPool(), /write mysqlEngine\(\{ client \}\)/],
  ["mysqlEngine", my.mysqlEngine, {}, /client must be .*got nothing/],
  ["mysqlEngine", my.mysqlEngine, { foo: 1 }, /it knows client, prefix/],
  ["init", my.init, URL_WITH_SECRET, /client must be .*a string.*init\(url\)/],
  ["a fence", (x) => my.fenceInTransaction(x, "exclusive:1:a"), URL_WITH_SECRET, /must be/],
  ["a fence", (x) => my.fenceInTransaction(x, "exclusive:1:a"), undefined, /must be/],
  ["a claim", (x) => my.claimInTransaction(x, "a"), undefined, /must be/],
  ["a claim", (x) => my.claimInTransaction(x, "a"), new MysqlPool(), /a pool has no transaction/],
  ["quorumEngine", quorumEngine, undefined, /like quorumEngine\(\{ nodes \}\), got nothing/],
  ["quorumEngine", quorumEngine, [new Redis()], /got a list/],
  ["quorumEngine", quorumEngine, { foo: 1 }, /it knows nodes, writeQuorum/],
  ["quorumEngine", quorumEngine, {}, /nodes is a list of \{ name, client \}, got nothing/],
  ["quorumEngine", quorumEngine, { nodes: [new Redis()] }, /\{ name, client \}.*class Redis/],
  ["quorumEngine", quorumEngine, { nodes: [null, null, null] }, /\{ name, client \}.*null/],
  ["init of a quorum", initQuorum, undefined, /like init\(\{ nodes \}\), got nothing/],
  ["init of a quorum", initQuorum, { nodes: [URL_WITH_SECRET] }, /\{ name, client \}.*a string/],
  ["etcdEngine", etcdEngine, undefined, /like etcdEngine\(\{ endpoints \}\), got nothing/],
  ["etcdEngine", etcdEngine, URL_WITH_SECRET, /got a string/],
  ["etcdEngine", etcdEngine, {}, /endpoints must be/],
  ["zookeeperEngine", zookeeperEngine, undefined, /like zookeeperEngine\(\{ hosts \}\)/],
  ["zookeeperEngine", zookeeperEngine, "h1", /like zookeeperEngine\(\{ hosts \}\), got a string/],
  ["sqliteEngine", sqliteEngine, "locks.db", /like sqliteEngine\(\{ path \}\), got a string/],
  ["memoryEngine", memoryEngine, new MemoryStore(), /write memoryEngine\(\{ store \}\)/],
  ["memoryEngine", memoryEngine, null, /like memoryEngine\(\{ store \}\), got null/],
  ["memoryEngine", memoryEngine, { store: {} }, /store must be a MemoryStore/],
];

for (const [name, call, given, says] of REFUSED) {
  test(`${name} refuses what it cannot use, and shows no secret: ${says}`, async () => {
    const attempt = async () => await call(given as never);
    await assert.rejects(attempt, (error) => {
      assert.ok(error instanceof UsageError, `it threw ${String(error)}`);
      assert.match(error.message, says);
      assert.doesNotMatch(error.message, /s3cr3t/);
      return true;
    });
  });
}

test("connect takes a URL object like its text", async () => {
  await using locks = await connect(new URL("memory:"));
  assert.equal(locks.engine.name, "memory");
  assert.equal(await init(new URL("memory:")), "nothing to do");
  await assert.rejects(connect(new URL("redsi://u:s3cr3t@h")), /did you mean "redis:/);
});
