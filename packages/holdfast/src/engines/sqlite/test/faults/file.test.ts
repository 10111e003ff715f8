// A problem with the file is reported early, in plain words, and without effect.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { EngineError, UsageError } from "../../../../errors.js";
import { refuseNetworkFileSystem } from "../../file/database.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

function refuses(url: string, words: RegExp): Promise<void> {
  return assert.rejects(connect(url), (error: unknown) => {
    assert.ok(error instanceof EngineError, String(error));
    assert.equal(error.effect, "none");
    assert.match(error.message, words);
    return true;
  });
}

test("a file that is not SQLite is refused and left as it is", async () => {
  await using server = new SqliteTestServer();
  writeFileSync(
    server.path,
    "something else entirely, and longer than a header of SQLite's".repeat(9),
  );
  const before = readFileSync(server.path);
  await refuses(server.url, /is not an SQLite database; nothing was changed/);
  assert.deepEqual(readFileSync(server.path), before);
});

test("a database of another program is refused and left as it is", async () => {
  await using server = new SqliteTestServer();
  await server.sql("CREATE TABLE theirs (a)");
  await refuses(server.url, /is a database of another program; nothing was changed/);
  assert.deepEqual(
    (await server.sql("SELECT name FROM sqlite_schema")).map((row) => row.name),
    ["theirs"],
  );
});

test("another schema version is refused, and the error says what to do", async () => {
  await using server = new SqliteTestServer();
  await (await connect(server.url)).close();
  await server.sql("PRAGMA user_version = 4");
  await refuses(server.url, /schema 4, this one knows 3\)\. Upgrade holdfast/);
  await server.sql("PRAGMA user_version = 1");
  await refuses(server.url, /schema 1, this one knows 3\)\. Use another file, or stop all/);
});

test("a missing folder is refused, and the error has the command that makes it", async () => {
  await using server = new SqliteTestServer();
  await refuses(`sqlite:${server.folder}/no/locks.db`, /does not exist\. Make it: mkdir -p/);
});

test("a read-only folder is refused without ending the process", async () => {
  await using server = new SqliteTestServer();
  const folder = join(server.folder, "locked");
  mkdirSync(folder);
  chmodSync(server.folder, 0o755);
  chmodSync(folder, 0o555);
  const said = refusalWithoutRights(server, `sqlite:${folder}/locks.db`);
  assert.match(said, /^ENGINE none cannot open .*readable and writable for this user/);
});

test("a file that cannot be written to is refused", async () => {
  await using server = new SqliteTestServer();
  await (await connect(server.url)).close();
  chmodSync(server.folder, 0o755);
  chmodSync(server.path, 0o444);
  const said = refusalWithoutRights(server, server.url);
  assert.match(said, /^ENGINE none .*(cannot be written to|cannot open)/);
});

test("a full disk is reported as full, and a lease that was held before stays held", async (t) => {
  if (process.getuid?.() !== 0) {
    t.diagnostic("needs root to mount a small disk; npm test as root covers it");
    return;
  }
  await using server = new SqliteTestServer();
  // A disk of 512 KiB in its own mount namespace. Both end with the child.
  const onSmallDisk = ["unshare", "--mount", "sh", "-c"];
  const mount = `mount -t tmpfs -o size=512k tmpfs "${server.folder}" && exec "$@"`;
  const child = server.child("full-disk", [server.folder], [...onSmallDisk, mount, "sh"]);
  assert.equal(await child.line(), "filled ENOSPC");
  assert.match(
    (await child.line())!,
    /^refused none the disk under .* is full; nothing was changed/,
  );
  assert.equal(await child.line(), "held true");
  assert.equal(await child.line(), "recorded true");
  assert.equal(await child.line(), "again granted");
});

test("a statement that rolls back by itself is reported with its own error, and the engine works on", async () => {
  await using server = new SqliteTestServer();
  await using locks = await connect(server.url);
  const rollBack = (on: string) =>
    server.sql(`CREATE TRIGGER broken BEFORE ${on} BEGIN SELECT RAISE(ROLLBACK, 'made up'); END`);
  await rollBack("INSERT ON grants");
  await assert.rejects(locks.acquire("a"), { code: "ENGINE", effect: "none", message: /made up/ });
  await server.sql("DROP TRIGGER broken");
  await locks.run("a", () => {});
  // The first process that opens the file after a boot changes the counter, on a separate
  // connection.
  await server.sql("UPDATE counter SET boot = 'another'");
  await rollBack("UPDATE ON counter");
  await assert.rejects(connect(server.url), { code: "ENGINE", message: /made up/ });
  await server.sql("DROP TRIGGER broken");
  await (await connect(server.url)).close();
});

test("a process with too many open files gets an error that says so, not one about file permissions", async () => {
  await using server = new SqliteTestServer();
  const child = server.child(
    "crowded",
    [server.url],
    ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"],
  );
  assert.equal(
    await child.line(),
    "ENGINE retryable this process has too many files open (ulimit -n)",
  );
  assert.equal(await child.line(), "opened");
});

test("a network file system is recognized by its type and refused", () => {
  assert.throws(() => refuseNetworkFileSystem(0x6969, "/mnt/x"), /network file system \(NFS\)/);
  assert.throws(() => refuseNetworkFileSystem(-11317950, "/mnt/x"), /\(CIFS\)/);
  refuseNetworkFileSystem(0xef53, "/home/x");
  refuseNetworkFileSystem(0x01021994, "/dev/shm/x");
});

test("a URL with a host, an unknown parameter or :memory: is refused, and the error says what to write", async () => {
  await assert.rejects(
    connect("sqlite://locks.db"),
    (e) => e instanceof UsageError && /write "sqlite:locks.db"/.test(e.message),
  );
  await assert.rejects(connect("sqlite:a.db?mode=ro"), /has no parameter "mode"/);
  await assert.rejects(connect("sqlite::memory:"), /use "memory:"/);
});

test("without a path the file is in the user's state folder", async () => {
  await using server = new SqliteTestServer();
  const before = process.env.XDG_STATE_HOME;
  process.env.XDG_STATE_HOME = server.folder;
  try {
    const locks = await connect("sqlite:");
    assert.equal(await locks.run("a", (lease) => lease.held), true);
    await locks.close();
    assert.ok(readFileSync(join(server.folder, "holdfast", "locks.db")).length > 0);
  } finally {
    if (before === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = before;
  }
});

/**
 * What a user is told who may not write there. Root may write anywhere, so the child gives its rights up. It
 * loads the library and its client first: the folder of this checkout may be closed to other users.
 */
function refusalWithoutRights({ folder }: SqliteTestServer, url: string): string {
  const script = `
    const { connect } = await import(${JSON.stringify(new URL("../../../../connect.js", import.meta.url).href)});
    await (await connect(${JSON.stringify(`sqlite:${folder}/first.db`)})).close();
    if (process.getuid() === 0) {
      process.setgroups([65_534]);
      process.setgid(65_534);
      process.setuid(65_534);
    }
    await connect(${JSON.stringify(url)}).catch(({ code, effect, message }) => console.log(code, effect, message));`;
  const args = ["--input-type=module", "-e", script];
  return execFileSync(process.execPath, args, { encoding: "utf8" });
}
