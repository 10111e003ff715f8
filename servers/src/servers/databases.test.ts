import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startMariadb } from "./mariadb.js";
import { startPgbouncer } from "./pgbouncer.js";
import { startPostgres } from "./postgres.js";

test("a PostgreSQL keeps its data over kill -9, and stop leaves neither process nor folder", async () => {
  const server = await startPostgres();
  const { pid, folder } = server;
  psql(server.port, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (42)");
  await server.restart();
  assert.notEqual(server.pid, pid);
  assert.equal(psql(server.port, "SELECT n FROM kept"), "42");
  await server.stop();
  assert.equal(isAlive(pid), false);
  assert.equal(existsSync(folder), false);
});

test("a PgBouncer lends sessions of the PostgreSQL behind it", async () => {
  await using server = await startPostgres();
  await using pooler = await startPgbouncer({ target: server.port });
  assert.equal(psql(pooler.port, "SELECT 6 * 7"), "42");
  const before = pooler.pid;
  await pooler.restart();
  assert.notEqual(pooler.pid, before);
  assert.equal(psql(pooler.port, "SELECT 6 * 7"), "42");
});

test("a MariaDB keeps its data over kill -9, and stop leaves neither process nor folder", async () => {
  const server = await startMariadb({ durable: true });
  const { pid, folder } = server;
  mariadb(server.port, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (42)");
  await server.restart();
  assert.notEqual(server.pid, pid);
  assert.equal(mariadb(server.port, "SELECT n FROM kept"), "42");
  await server.stop();
  assert.equal(isAlive(pid), false);
  assert.equal(existsSync(folder), false);
});

test("a MariaDB that starts leaves alone what another one has in its temporary folder", async () => {
  await using first = await startMariadb();
  const folder = mariadb(first.port, "SELECT @@tmpdir");
  // As it names a temporary table of a query under way.
  const files = ["MAI", "MAD"].map((end) => join(folder, `#sql-temptable-holdfast-1-0.${end}`));
  for (const file of files) writeFileSync(file, "");
  try {
    await using _second = await startMariadb();
    for (const file of files) assert.ok(existsSync(file), `${file} was taken for a leftover`);
  } finally {
    for (const file of files) rmSync(file, { force: true });
  }
});

function psql(port: number, query: string): string {
  const args = ["-h", "127.0.0.1", "-p", String(port), "-U", "postgres", "-qtAc", query];
  return ask("psql", args);
}

function mariadb(port: number, query: string): string {
  const args = ["--no-defaults", "-h", "127.0.0.1", "-P", String(port), "-u", "root", "-N"];
  return ask("mariadb", [...args, "-e", query, "holdfast_test"]);
}

function ask(program: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout.trim();
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
