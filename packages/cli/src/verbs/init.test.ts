import assert from "node:assert/strict";
import { test } from "node:test";
import { allOrNone, startMariadb, startPostgres, startRedis } from "@holdfast/servers";
import mysql from "mysql2/promise";
import pg from "pg";
import { finish, holdfast } from "../test/holdfast.fixture.js";

const STARTS = { postgres: startPostgres, mysql: startMariadb };

for (const [name, start] of Object.entries(STARTS)) {
  test(`${name}: run without tables names init, init may run twice, and then run works`, async (t) => {
    await using server = await start();
    const { url } = server;
    const early = holdfast(t, ["run", "a", "--url", url, "--", "echo", "no"]);
    assert.equal(await early.ended, 69);
    assert.match(early.stderr, /Run "npx @holdfast\/cli init" with this URL/);

    const init = holdfast(t, ["init", url]);
    assert.equal(await init.ended, 0, init.stderr);
    const made =
      "tables and routines were made or brought up to date, and this user may use them\n";
    assert.equal(init.stdout, made);
    const second = await finish(holdfast(t, ["init", url]));
    assert.match(second.stdout, /^everything that locks need was there already, and this user may/);
    const again = holdfast(t, ["init", "--json", "--url", url]);
    assert.equal(await again.ended, 0, again.stderr);
    assert.deepEqual(JSON.parse(again.stdout), { outcome: "nothing to do", usable: true });

    const run = holdfast(t, ["run", "a", "--url", url, "--", "echo", "yes"]);
    assert.equal(await run.ended, 0, run.stderr);
    assert.equal(run.stdout, "yes\n");
  });
}

test("postgres: init by a user without rights names the missing grants", async (t) => {
  await using server = await startPostgres();
  const asAdmin = async (statement: string) => {
    const admin = new pg.Client(server.url);
    await admin.connect();
    await admin.query(statement);
    await admin.end();
  };
  await asAdmin("CREATE ROLE app LOGIN; CREATE ROLE maker LOGIN");
  await asAdmin(`GRANT CREATE ON DATABASE "${new URL(server.url).pathname.slice(1)}" TO maker`);
  const maker = await finish(holdfast(t, ["init", server.url.replace(/\/\/[^@/]*@/, "//maker@")]));
  assert.equal(maker.code, 0, maker.stderr);
  const url = server.url.replace(/\/\/[^@/]*@/, "//app@");
  assert.notEqual(url, server.url);
  const without = await finish(holdfast(t, ["init", url]));
  assert.equal(without.code, 69, without.stderr);
  const [, grants = ""] = /may not use them; their owner sends: (.*)/.exec(without.stdout) ?? [];
  assert.match(grants, /^GRANT USAGE .* TO app; GRANT EXECUTE .* TO app$/);
  const json = await finish(holdfast(t, ["init", "--json", url]));
  assert.deepEqual(JSON.parse(json.stdout), { outcome: "nothing to do", usable: false, grants });
  assert.equal(json.code, 69);
  await asAdmin(grants);
  const granted = await finish(holdfast(t, ["init", url]));
  assert.match(granted.stdout, /this user may use it/);
  const run = await finish(holdfast(t, ["run", "a", "--url", url, "--", "echo", "yes"]));
  assert.equal(run.stdout, "yes\n", run.stderr);
});

test("mysql: init by a user without rights shows the server's error and the missing grants", async (t) => {
  await using server = await startMariadb();
  const database = new URL(server.url).pathname.slice(1);
  const asAdmin = async (...statements: string[]) => {
    const admin = await mysql.createConnection(server.url);
    for (const statement of statements) await admin.query(statement);
    await admin.end();
  };
  const rights =
    "CREATE, DROP, ALTER, INDEX, CREATE ROUTINE, ALTER ROUTINE, EXECUTE, SELECT, INSERT, UPDATE, DELETE";
  await asAdmin(
    "CREATE USER app@'%', maker@'%'",
    `GRANT SELECT ON ${database}.* TO app@'%'`,
    `GRANT ${rights} ON ${database}.* TO maker@'%'`,
  );
  const as = (user: string) => server.url.replace(/\/\/[^@/]*@/, `//${user}@`);
  const without = await finish(holdfast(t, ["init", as("app")]));
  assert.equal(without.code, 69);
  assert.match(without.stderr, /the database says: .*denied.*app.*; |the database says: .*denied/);
  const [, grants = ""] = /their owner sends: (.*)\n$/.exec(without.stderr) ?? [];
  assert.equal(grants, `GRANT EXECUTE ON ${database}.* TO app`);
  const made = await finish(holdfast(t, ["init", as("maker")]));
  assert.equal(made.code, 0, made.stderr);
  await asAdmin(grants);
  const granted = await finish(holdfast(t, ["init", as("app")]));
  assert.match(granted.stdout, /was there already, and this user may use it/, granted.stderr);
});

test("redis: init says that the engine needs nothing", async (t) => {
  const { code, stdout } = await finish(holdfast(t, ["init", "redis://u:secret@127.0.0.1:1"]));
  assert.equal(code, 0);
  assert.equal(stdout, "redis: needs nothing to be prepared; nothing was asked of it\n");
});

test("redlock: new servers count after init has certified them, and init may run twice", async (t) => {
  const servers = await allOrNone([startRedis(), startRedis(), startRedis()]);
  t.after(() => Promise.all(servers.map((server) => server.stop())));
  const url = `redlock://${servers.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  const early = holdfast(t, ["run", "a", "--url", url, "--", "echo", "no"]);
  assert.equal(await early.ended, 69);
  assert.match(early.stderr, /quarantine/);
  for (let i = 0; i < 2; i++) {
    const init = holdfast(t, ["init", "--url", url]);
    assert.equal(await init.ended, 0, init.stderr);
    const run = holdfast(t, ["run", "a", "--url", url, "--", "echo", "yes"]);
    assert.equal(await run.ended, 0, run.stderr);
    assert.equal(run.stdout, "yes\n");
  }
});

test("redlock: init --wait sits out the quarantine of servers that were restarted", async (t) => {
  const servers = await allOrNone([startRedis(), startRedis(), startRedis()]);
  t.after(() => Promise.all(servers.map((server) => server.stop())));
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
  const url = `redlock://${hosts}?maxTtlMs=2000`;
  const run = () => holdfast(t, ["run", "a", "--ttl", "2s", "--url", url, "--", "echo", "yes"]);
  assert.equal(await holdfast(t, ["init", "--url", url]).ended, 0);
  await servers[0]!.restart();
  await servers[1]!.restart();
  assert.equal(await holdfast(t, ["init", "--url", url]).ended, 0);
  const early = run();
  assert.equal(await early.ended, 69, early.stderr);
  assert.match(early.stderr, /quarantine/);
  const init = holdfast(t, ["init", "--wait", "--url", url]);
  assert.equal(await init.ended, 0, init.stderr);
  const later = run();
  assert.equal(await later.ended, 0, later.stderr);
  // The usual ttl is longer than these servers may keep anything.
  const usual = holdfast(t, ["run", "a", "--url", url, "--", "echo", "yes"]);
  assert.equal(await usual.ended, 0, usual.stderr);
});

test("init says when an engine needs nothing, and refuses unknown engines and arguments", async (t) => {
  const memory = holdfast(t, ["init", "--url", "memory:"]);
  assert.equal(await memory.ended, 0);
  assert.equal(memory.stdout, "memory: needs nothing to be prepared; nothing was asked of it\n");
  const unknown = holdfast(t, ["init", "--url", "oracle://u:secret@h/db"]);
  assert.equal(await unknown.ended, 78);
  assert.match(unknown.stderr, /no engine for "oracle:"/);
  assert.doesNotMatch(unknown.stderr, /secret/);
  const named = holdfast(t, ["init", "nightly"]);
  assert.equal(await named.ended, 64);
  assert.match(named.stderr, /init takes the URL of an engine, got "nightly"/);
  for (const two of [
    ["init", "memory:", "redis://u:secret@h"],
    ["init", "memory:", "--url", "redis://u:secret@h"],
  ]) {
    const both = holdfast(t, two);
    assert.equal(await both.ended, 64);
    assert.match(both.stderr, /init takes one URL, got two/);
    assert.doesNotMatch(both.stderr, /secret/);
  }
});

test("with --json a failure is one JSON object on stderr, even for wrong arguments", async (t) => {
  const away = "postgres://u:secret@127.0.0.1:1/db";
  const unreachable = { code: "ENGINE", reason: "unreachable", exitCode: 69 };
  for (const [args, told] of [
    [["init", "--json", "oracle://u:secret@h/db"], { code: "UNSUPPORTED", exitCode: 78 }],
    [["init", "--json", away], unreachable],
    [["run", "a", "--json", "--url", away, "--wait", "0s", "--", "true"], unreachable],
    [["init", "--json", "nightly"], { code: "USAGE", exitCode: 64 }],
    [["run", "--json", "--", "true"], { code: "USAGE", exitCode: 64 }],
  ] as const) {
    const running = holdfast(t, args);
    assert.equal(await running.ended, told.exitCode);
    const { event, message, ...rest } = JSON.parse(running.stderr);
    assert.deepEqual([event, rest], ["failed", told]);
    assert.doesNotMatch(message, /secret/);
    assert.equal(running.stdout, "");
  }
});
