// Tokens survive kill -9, a power cut and a boot; grants need not.
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { systemClock } from "../../../../core/runtime/clock.js";
import { openDatabase } from "../../file/database.js";
import { resolveSqlite } from "../../options.js";
import { sql } from "../../records/sql.gen.js";
import { Store } from "../../records/store.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

test("the connection that reserves tokens waits for the disk; the others only keep the file intact", async () => {
  await using server = new SqliteTestServer();
  const terms = resolveSqlite({ path: server.path });
  for (const [durability, synchronous] of [
    ["durable", 2],
    ["quick", 1],
  ] as const) {
    const client = await openDatabase(terms, durability);
    assert.deepEqual(
      Number((client.prepare("PRAGMA synchronous").get() as Row).synchronous),
      synchronous,
    );
    assert.equal((client.prepare("PRAGMA journal_mode").get() as Row).journal_mode, "wal");
    client.close();
  }
});

test("only a durable connection reserves tokens, and an engine also has quick connections", async () => {
  await using server = new SqliteTestServer();
  // Records which statement each connection prepares, and the connection's synchronous setting.
  const seen: { sql: string; synchronous: number }[] = [];
  const watched = async (...args: Parameters<typeof openDatabase>) => {
    const client = await openDatabase(...args);
    const { synchronous } = client.prepare("PRAGMA synchronous").get() as Row;
    return {
      exec: (text: string) => client.exec(text),
      close: () => client.close(),
      prepare: (text: string) => {
        seen.push({ sql: text, synchronous: Number(synchronous) });
        return client.prepare(text);
      },
    };
  };
  const store = new Store(
    resolveSqlite({ path: server.path }),
    "p",
    systemClock,
    () => {},
    watched,
  );
  await store.open();
  await store.close();
  const reserving = seen.filter(
    (s) => s.sql === sql.counterReserve || s.sql === sql.counterNewBoot,
  );
  assert.ok(reserving.length > 0, "a new file reserves its first block");
  assert.ok(
    reserving.every((s) => s.synchronous === 2),
    "tokens are reserved only when the reserve is on the disk",
  );
  assert.ok(
    seen.some((s) => s.synchronous === 1),
    "other statements do not wait for the disk",
  );
});

test("tokens rise after a power cut that lost the last commits", async () => {
  // After a power cut the file may be in any state since the last durable commit, and the boot is
  // another one. This test makes such a file by hand.
  await using server = new SqliteTestServer();
  const before = await connect(server.url);
  const [early] = await server.sql("SELECT next FROM counter");
  let last = 0n;
  for (let i = 0; i < 50; i++) last = await before.run("a", (lease) => lease.token);
  await before.close();
  await server.sql(`UPDATE counter SET next = ${early!.next}, boot = 'an earlier boot'`);
  const after = await connect(server.url);
  const token = await after.run("a", (lease) => lease.token);
  assert.ok(token > last, `${token} after ${last}`);
  await after.close();
});

test("tokens rise past the end of a block, and the next block is reserved before it is used", async () => {
  await using server = new SqliteTestServer();
  const locks = await connect(server.url);
  await server.sql("UPDATE counter SET next = reserved - 1");
  let last = 0n;
  for (let i = 0; i < 4; i++) {
    const token = await locks.run("a", (lease) => lease.token);
    assert.ok(token > last);
    last = token;
    const [counter] = await server.sql("SELECT next, reserved FROM counter");
    assert.ok(Number(counter!.next) <= Number(counter!.reserved));
  }
  await locks.close();
});

test("tokens rise after a holder is killed with SIGKILL", async () => {
  await using server = new SqliteTestServer();
  let last = 0n;
  for (let i = 0; i < 3; i++) {
    const child = server.child("holder", [server.url, "a", '{"ttlMs":2000,"waitMs":30000}']);
    const token = BigInt((await child.line())!.split(" ")[1]!);
    assert.ok(token > last, `${token} after ${last}`);
    last = token;
    child.process.kill("SIGKILL");
    await child.exited;
  }
});

type Row = Record<string, unknown>;
