// A failure that a person must fix is reported at once, with its name and a reason that a program
// can read.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import {
  allOrNone,
  startCluster,
  startEtcd,
  startMariadb,
  startPostgres,
  startRedis,
  startSentinel,
  startZooKeeper,
} from "@holdfast/servers";
import { Redis } from "ioredis";
import mysql from "mysql2/promise";
import pg from "pg";
import { connect } from "../connect.js";
import { EngineError, type FailureReason } from "../errors.js";
import { init } from "../init.js";

const [RIGHT, WRONG] = ["right-secret", "wrong-secret"];
// Far below the 5 s that core waits for a server that is down, and far above a round trip.
const AT_ONCE_MS = 3_500;
const TRIES = 4;

interface Told {
  readonly reason: FailureReason;
  readonly retryable: boolean;
  readonly message: RegExp;
  readonly withinMs?: number;
}

const away: Told = { reason: "unreachable", retryable: true, message: /ECONNREFUSED/ };
const password: Told = {
  ...{ reason: "credentials", retryable: false, withinMs: AT_ONCE_MS },
  message: /password/,
};

/** The password stands in the place of the user name. */
const alone: Told = { ...password, message: /user name and no password; .*redis:\/\/:password@/ };

/** A busy machine may be slow once. An error that is not reported at once is late in every try. */
async function tells(work: () => Promise<unknown>, told: Told): Promise<void> {
  const slow: string[] = [];
  while (slow.length < TRIES) {
    const tookMs = await tellsAfter(work, told);
    if (tookMs !== null && tookMs < (told.withinMs ?? Infinity)) return;
    slow.push(tookMs === null ? "longer than a server has to answer" : `${Math.round(tookMs)} ms`);
  }
  assert.fail(`it took ${slow.join(", ")}`);
}

/** Gives how long it took; null where a server was not heard in time, so that nobody knows its reason. */
async function tellsAfter(work: () => Promise<unknown>, told: Told): Promise<number | null> {
  const startedAt = performance.now();
  const error = await work().then(
    () => assert.fail("it did not fail"),
    (reason: unknown) => reason,
  );
  const tookMs = performance.now() - startedAt;
  assert.ok(error instanceof EngineError, String(error));
  const { reason, retryable, effect, message } = error;
  if (/(did not answer|no connection) in time/.test(message)) return null;
  assert.match(message, told.message);
  assert.deepEqual(
    { reason, retryable, effect },
    { reason: told.reason, retryable: told.retryable, effect: "none" },
    message,
  );
  assert.ok(!message.includes(WRONG) && !message.includes(RIGHT), "no password in a message");
  return tookMs;
}

/** Connects by the URL alone, like a newcomer. */
async function lockAt(url: string): Promise<void> {
  await using locks = await connect(url);
  await locks.run("a", { waitMs: 5_000 }, () => {});
}

describe("reasons", { concurrency: 2 }, () => {
  for (const url of [
    ...["redis://127.0.0.1:1", "redlock://127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"],
    ...["postgres://u@127.0.0.1:1/d", "mysql://u@127.0.0.1:1/d"],
    ...["etcd://127.0.0.1:1", "zookeeper://127.0.0.1:1"],
  ]) {
    it(`a server that is down is reported as unreachable, and retryable: ${url}`, async () => {
      await tells(() => connect(url), away);
    });
  }

  it("a server of another kind is reported as perhaps not the right one", async () => {
    await using redis = await startRedis();
    await using postgres = await startPostgres();
    await using mariadb = await startMariadb();
    const at = (server: { port: number }) => `127.0.0.1:${server.port}`;
    const strange = (kind: string): Told => ({
      ...away,
      message: new RegExp(`; perhaps this is no ${kind}`),
    });
    await Promise.all([
      tells(() => connect(`redis://${at(postgres)}`), strange("Redis")),
      tells(() => connect(`redis://${at(mariadb)}`), strange("Redis")),
      tells(() => connect(`postgres://u@${at(redis)}/d`), strange("PostgreSQL")),
      tells(() => connect(`postgres://u@${at(mariadb)}/d`), strange("PostgreSQL")),
      tells(() => connect(`mysql://u@${at(redis)}/d`), strange("MySQL or MariaDB")),
      tells(() => connect(`mysql://u@${at(postgres)}/d`), strange("MySQL or MariaDB")),
    ]);
  });

  it("redis: reports a wrong or missing password, and a missing database", async () => {
    await using server = await startRedis();
    await closeTo(server.port);
    const at = `127.0.0.1:${server.port}`;
    await lockAt(`redis://:${RIGHT}@${at}`);
    await tells(() => connect(`redis://:${WRONG}@${at}`), password);
    await tells(() => connect(`redis://somebody:${RIGHT}@${at}`), password);
    await tells(() => connect(`redis://${at}`), password);
    await tells(() => connect(`redis://${RIGHT}@${at}`), alone);
    await tells(() => connect(`redis://:${RIGHT}@${at}/99`), {
      ...{ reason: "no-database", retryable: false, withinMs: AT_ONCE_MS },
      message: /no database 99/,
    });
  });

  it("redlock: reports a wrong or missing password, and servers that nobody has certified", async () => {
    const servers = await allOrNone(Array.from({ length: 3 }, () => startRedis()));
    try {
      const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
      await tells(() => lockAt(`redlock://${hosts}`), {
        ...{ reason: "not-prepared", retryable: true },
        message: /npx @holdfast\/cli init/,
      });
      await init(`redlock://${hosts}`);
      await Promise.all(servers.map(({ port }) => withoutScripts(port)));
      await tells(() => lockAt(`redlock://weak:${RIGHT}@${hosts}`), {
        ...{ reason: "rights", retryable: false, message: /may not/ },
      });
      await Promise.all(servers.map(({ port }) => closeTo(port)));
      for (const user of [`:${WRONG}@`, ""]) {
        await tells(() => connect(`redlock://${user}${hosts}`), password);
        await tells(() => init(`redlock://${user}${hosts}`), password);
      }
      await tells(() => connect(`redlock://${RIGHT}@${hosts}`), alone);
    } finally {
      await Promise.all(servers.map((server) => server.stop()));
    }
  });

  it("redis+sentinel: reports a wrong or missing password", async () => {
    await using servers = await startSentinel();
    await Promise.all(servers.servers.map(({ port }) => closeTo(port)));
    const hosts = servers.sentinelPorts.map((port) => `127.0.0.1:${port}`).join(",");
    for (const user of [`:${WRONG}@`, ""]) {
      await tells(() => connect(`redis+sentinel://${user}${hosts}/${servers.name}`), password);
    }
  });

  it("redis+cluster: reports a wrong or missing password", async () => {
    await using cluster = await startCluster();
    await Promise.all(cluster.ports.map(closeTo));
    const hosts = cluster.ports.map((port) => `127.0.0.1:${port}`).join(",");
    for (const user of [`:${WRONG}@`, ""]) {
      await tells(() => connect(`redis+cluster://${user}${hosts}`), password);
    }
  });

  it("postgres: reports missing tables, database, password and rights", async () => {
    await using server = await startPostgres();
    const at = `127.0.0.1:${server.port}`;
    const admin = new pg.Client({ host: "127.0.0.1", user: "postgres", port: server.port });
    await admin.connect();
    const rights: Told = { reason: "rights", retryable: false, message: /may not/ };
    try {
      await admin.query(`CREATE ROLE bare LOGIN; CREATE ROLE app LOGIN PASSWORD '${RIGHT}'`);
      await tells(() => lockAt(`postgres://postgres@${at}/postgres`), {
        ...{ reason: "not-prepared", retryable: false },
        message: /npx @holdfast\/cli init/,
      });
      const database = { reason: "no-database", retryable: false, message: /"nowhere"/ } as const;
      await tells(() => connect(`postgres://postgres@${at}/nowhere`), database);
      await tells(() => init(`postgres://postgres@${at}/nowhere`), database);
      await tells(() => init(`postgres://bare@${at}/postgres`), rights);
      await tells(() => connect(`postgres://nobody@${at}/postgres`), password);
      await init(`postgres://postgres@${at}/postgres?hold=advisory`);
      await lockAt(`postgres://postgres@${at}/postgres?hold=advisory`);
      await init(`postgres://postgres@${at}/postgres`);
      assert.equal(await init(`postgres://bare@${at}/postgres`), "nothing to do");
      await tells(() => lockAt(`postgres://bare@${at}/postgres`), rights);
      // From here on the server asks for a password.
      const rules = join(server.folder, "data/pg_hba.conf");
      writeFileSync(rules, `host all app all scram-sha-256\n${readFileSync(rules, "utf8")}`);
      await admin.query("SELECT pg_reload_conf()");
      await admin.query("SELECT pg_sleep(0.5)");
      await tells(() => connect(`postgres://app:${WRONG}@${at}/postgres`), password);
      await tells(() => connect(`postgres://app@${at}/postgres`), password);
    } finally {
      await admin.end();
    }
  });

  it("mysql: reports missing tables, database, password and rights", async () => {
    await using server = await startMariadb();
    const at = `127.0.0.1:${server.port}`;
    const { port } = server;
    const admin = await mysql.createConnection({ host: "127.0.0.1", port, user: "root" });
    const rights: Told = { reason: "rights", retryable: false, message: /may not/ };
    try {
      await admin.query("CREATE DATABASE locks");
      await admin.query(`CREATE USER app@'%' IDENTIFIED BY '${RIGHT}'`);
      await admin.query("GRANT SELECT ON locks.* TO app@'%'");
      await tells(() => lockAt(`mysql://root@${at}/locks`), {
        ...{ reason: "not-prepared", retryable: false },
        message: /npx @holdfast\/cli init/,
      });
      const database = { reason: "no-database", retryable: false, message: /"nowhere"/ } as const;
      await tells(() => connect(`mysql://root@${at}/nowhere`), database);
      await tells(() => init(`mysql://root@${at}/nowhere`), database);
      await tells(() => init(`mysql://app:${RIGHT}@${at}/locks`), rights);
      await init(`mysql://root@${at}/locks`);
      await tells(() => lockAt(`mysql://app:${RIGHT}@${at}/locks`), rights);
      await tells(() => connect(`mysql://app:${WRONG}@${at}/locks`), password);
      await tells(() => connect(`mysql://app@${at}/locks`), password);
    } finally {
      await admin.end();
    }
  });

  it("etcd: reports a wrong or missing password, and missing rights", async () => {
    await using server = await startEtcd();
    const at = `127.0.0.1:${server.port}`;
    const say = async (path: string, body: object) => {
      const answer = await fetch(`http://${at}/v3/auth/${path}`, {
        ...{ method: "POST", body: JSON.stringify(body) },
      });
      assert.equal(answer.status, 200, await answer.text());
    };
    for (const name of ["root", "app"]) await say("user/add", { name, password: RIGHT });
    await say("role/add", { name: "root" });
    await say("user/grant", { user: "root", role: "root" });
    await say("enable", {});
    await lockAt(`etcd://root:${RIGHT}@${at}`);
    await tells(() => lockAt(`etcd://root:${WRONG}@${at}`), password);
    await tells(() => lockAt(`etcd://${at}`), password);
    await tells(() => lockAt(`etcd://app:${RIGHT}@${at}`), {
      ...{ reason: "rights", retryable: false, message: /may not/ },
    });
  });

  it("zookeeper: reports missing rights on a node of another user", async () => {
    await using server = await startZooKeeper();
    await lockAt(`zookeeper://app:${RIGHT}@${server.hosts}/app?acl=creator`);
    const rights: Told = { reason: "rights", retryable: false, message: /may not/ };
    for (const user of [`app:${WRONG}@`, ""]) {
      await tells(() => lockAt(`zookeeper://${user}${server.hosts}/app`), rights);
    }
  });
});

async function closeTo(port: number): Promise<void> {
  const admin = new Redis({ port });
  await admin.config("SET", "requirepass", RIGHT);
  await admin.config("SET", "masterauth", RIGHT);
  admin.disconnect();
}

async function withoutScripts(port: number): Promise<void> {
  const admin = new Redis({ port });
  const rules = ["on", `>${RIGHT}`, "~*", "&*", "+@all", "-eval", "-evalsha"];
  await admin.acl("SETUSER", "weak", ...rules);
  admin.disconnect();
}
