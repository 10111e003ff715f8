// What opening a file costs the others that use it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../../core/runtime/clock.js";
import type { SqlClient, Value } from "../../file/client.js";
import { openDatabase } from "../../file/database.js";
import { resolveSqlite } from "../../options.js";
import { Store } from "../../records/store.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

test("opening a file asks the system about its other users before it takes the write lock", async (t) => {
  await using server = new SqliteTestServer();
  const holder = server.child("holder", [server.url, "a", '{"ttlMs":60000}']);
  await holder.line();
  server.child("holder", [server.url, "a", '{"waitMs":60000}']);
  while ((await server.sql("SELECT seq FROM waiters")).length === 0) await pause(10);
  let isWriting = false;
  const asked = { before: 0, writing: 0 };
  const { kill } = process;
  t.mock.method(process, "kill", (pid: number, signal: number) => {
    asked[isWriting ? "writing" : "before"]++;
    return kill.call(process, pid, signal);
  });
  await using store = storeOn(server, (client) => ({
    exec: (text) => client.exec(text),
    close: () => client.close(),
    prepare: (text) => {
      const statement = client.prepare(text);
      if (!/^(BEGIN|COMMIT|ROLLBACK)/.test(text)) return statement;
      const run = () => {
        const done = statement.run();
        isWriting = text.startsWith("BEGIN");
        return done;
      };
      return { run, get: () => statement.get(), all: () => statement.all() };
    },
  }));
  await store.open();
  assert.ok(asked.before >= 2, "it asks about the holder and the waiter");
  assert.equal(asked.writing, 0, "nobody can lock or renew while it asks");
});

test("opening a busy file opens one connection, however long it waits", async () => {
  await using server = new SqliteTestServer();
  await using first = storeOn(server);
  await first.open();
  const writer = await openDatabase(resolveSqlite({ path: server.path }), "quick");
  writer.exec("BEGIN IMMEDIATE");
  let connections = 0;
  await using second = storeOn(server, (client) => {
    connections++;
    return client;
  });
  const opening = second.open();
  await pause(300);
  writer.exec("COMMIT");
  writer.close();
  await opening;
  assert.equal(connections, 1);
});

test("of many that create a file together, one waits for the disk and reserves tokens", async () => {
  await using server = new SqliteTestServer();
  const creators = Array.from({ length: 8 }, () => storeOn(server));
  await Promise.all(creators.map((store) => store.open()));
  const [counter] = await server.sql("SELECT next, reserved FROM counter");
  assert.deepEqual({ ...counter }, { next: 1, reserved: 1 + 2 ** 20 });
  for (const store of creators) await store.close();
});

test("processes that died together are forgotten by one look at the grants", async () => {
  await using server = new SqliteTestServer();
  const dead = ["a", "b", "c"].map((name) => server.child("holder", [server.url, name]));
  for (const child of dead) await child.line();
  for (const child of dead) await child.kill();
  let looks = 0;
  await using store = storeOn(server, (client) => ({
    exec: (text) => client.exec(text),
    close: () => client.close(),
    prepare: (text) => {
      const statement = client.prepare(text);
      const run = (...params: readonly Value[]) => {
        if (/^DELETE FROM peers.*FROM grants/ms.test(text)) looks++;
        return statement.run(...params);
      };
      return { run, get: (...p) => statement.get(...p), all: (...p) => statement.all(...p) };
    },
  }));
  await store.open();
  assert.equal(looks, 1);
  assert.equal((await server.sql("SELECT id FROM peers")).length, 1, "the observer's own is left");
});

let stores = 0;

function storeOn(server: SqliteTestServer, watch = (client: SqlClient) => client) {
  const terms = resolveSqlite({ path: server.path });
  const open = async (...args: Parameters<typeof openDatabase>) =>
    watch(await openDatabase(...args));
  const store = new Store(terms, `store ${++stores}`, systemClock, () => {}, open);
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
