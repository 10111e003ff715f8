import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createConnection } from "node:net";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { allOrNone, ServerProcess } from "../running/process.js";
import { startRedis } from "./redis.js";

test("a Redis answers PING, and stop leaves neither process nor folder", async () => {
  const redis = await startRedis();
  const { pid, folder } = redis;
  assert.equal(await ask(redis.port, "PING"), "+PONG\r\n");
  assert.ok(isAlive(pid) && existsSync(folder));
  await redis.stop();
  assert.equal(isAlive(pid), false);
  assert.equal(existsSync(folder), false);
  await assert.rejects(ask(redis.port, "PING"), { code: "ECONNREFUSED" });
  await redis.stop();
});

test("a paused Redis answers nothing until it is resumed", async () => {
  await using redis = await startRedis();
  redis.pause();
  await assert.rejects(ask(redis.port, "PING", 200), /no answer/);
  redis.resume();
  assert.equal(await ask(redis.port, "PING"), "+PONG\r\n");
});

test("a restarted Redis comes back empty on the same port with another pid", async () => {
  await using redis = await startRedis();
  const before = redis.pid;
  await ask(redis.port, "SET a 1");
  await redis.restart();
  assert.notEqual(redis.pid, before);
  assert.equal(await ask(redis.port, "GET a"), "$-1\r\n");
});

test("a paused Redis can be stopped", async () => {
  const redis = await startRedis();
  const { pid } = redis;
  redis.pause();
  await redis.stop();
  assert.equal(isAlive(pid), false);
});

test("a server that ends while starting is reported with its log, and leaves no folder", async () => {
  const server = new ServerProcess({
    name: "broken",
    command: () => ["sh", "-c", "echo the reason; exit 3"],
    probe: () => Promise.reject(new Error("not yet")),
  });
  await assert.rejects(server.start(), /broken ended while starting:\nthe reason/);
  assert.equal(existsSync(server.folder), false);
});

test("a server does not outlive a test process that is killed with SIGKILL", async () => {
  // The child starts a Redis, tells us about it and waits to be killed.
  const code = `
    const { startRedis } = await import(${JSON.stringify(new URL("./redis.js", import.meta.url))});
    const { pid, folder } = await startRedis();
    console.log(JSON.stringify({ pid, folder }));
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const line = await new Promise<Buffer>((resolve) => child.stdout.once("data", resolve));
  const { pid, folder } = JSON.parse(String(line));
  assert.ok(isAlive(pid));
  child.kill("SIGKILL");
  for (let tries = 0; (isAlive(pid) || existsSync(folder)) && tries < 600; tries++) await sleep(50);
  assert.equal(isAlive(pid), false);
  assert.equal(existsSync(folder), false);
});

function ask(port: number, command: string, timeoutMs = 20_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    const timer = setTimeout(() => socket.destroy(new Error("no answer")), timeoutMs);
    socket.on("error", reject);
    socket.on("close", () => clearTimeout(timer));
    socket.on("data", (chunk) => {
      resolve(String(chunk));
      socket.destroy();
    });
    socket.write(`${command}\r\n`);
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // An orphan that nobody has counted yet is a zombie: it has a number and nothing else.
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}

test("a server whose port is taken reports that, although another server answers there", async () => {
  await using first = await startRedis();
  await assert.rejects(startRedis({ port: first.port }), /Address already in use/);
});

test("if one of several servers does not start, the others are stopped", async () => {
  const first = startRedis();
  const { pid, port } = await first;
  await assert.rejects(allOrNone([first, startRedis({ port })]), /Address already in use/);
  assert.equal(isAlive(pid), false);
});
