// Files that get a second name or another inode from a mount.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../../../connect.js";
import { canRun, SqliteTestServer } from "../support/test-server.fixture.js";

test("a file that is mounted by itself is refused, because its -wal and -shm are not shared", async (t) => {
  await using server = new SqliteTestServer();
  const mounted = join(server.folder, "one file.db");
  writeFileSync(mounted, "");
  const container = mounting(`mount --bind "${server.path}" "${mounted}"`);
  await using locks = await connect(server.url);
  if (!canRun(t, container)) return;
  await locks.acquire("a");
  const rival = server.child("rival", [`sqlite:${mounted}`, "a"], container);
  assert.match((await rival.line())!, /^refused .* is mounted by itself.*Mount its folder instead/);
});

test("a file in a folder that is mounted a second time is the same file there", async (t) => {
  await using server = new SqliteTestServer();
  const mounted = join(server.folder, "elsewhere");
  mkdirSync(mounted);
  const container = mounting(`mount --bind "${server.folder}" "${mounted}"`);
  await using locks = await connect(server.url);
  if (!canRun(t, container)) return;
  const lease = await locks.acquire("a");
  const url = `sqlite:${mounted}/locks.db`;
  assert.equal(await server.child("rival", [url, "a"], container).line(), "busy");
  await lease.release();
  assert.match((await server.child("rival", [url, "a"], container).line())!, /^granted/);
});

test("a file on an overlay file system keeps its leases, and its removal is noticed", async (t) => {
  // The file comes from a lower layer on another file system: opening it for writing copies it up,
  // which gives it another inode.
  await using server = new SqliteTestServer();
  await (await connect(server.url)).close();
  const [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map((name) => {
    const folder = join(server.folder, name);
    mkdirSync(folder);
    return folder;
  });
  const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
  const container = mounting(
    `mount -t tmpfs tmpfs "${lower}" && cp "${server.path}" "${lower}" &&
     mount -t overlay overlay -o "${layers}" "${merged}"`,
  );
  if (!canRun(t, container)) return;
  const options = '{"ttlMs":4000}';
  const holder = server.child("holder", [`sqlite:${merged}/locks.db`, "a", options], container);
  assert.match((await holder.line())!, /^held/);
  await new Promise((done) => setTimeout(done, 6_000));
  holder.say("state");
  assert.equal(await holder.line(), "state true", "its file is still in place");
  const inside = ["--mount", `--target=${holder.process.pid}`];
  execFileSync("nsenter", [...inside, "rm", `${merged}/locks.db`]);
  for (let attempts = 0, state = ""; state !== "state false"; attempts++) {
    assert.ok(attempts < 300, "the holder still believes that it has its lease");
    await new Promise((done) => setTimeout(done, 100));
    holder.say("state");
    state = (await holder.line())!;
  }
});

/** Runs a program in its own mount namespace, which ends with it. */
function mounting(command: string): readonly string[] {
  return ["unshare", "--mount", "sh", "-c", `${command} && exec "$@"`, "sh"];
}
