import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Child, Ground } from "./ground.fixture.js";

const PROCESSES = 8;
const EACH = 500;
const TTL_MS = 2_000;
const KILL_EVERY_MS = 200;

test("increments of 8 processes add up while one is killed every 200 ms and replaced", async () => {
  await using ground = new Ground();
  const number = join(ground.folder, "number");
  const log = join(ground.folder, "log");
  writeFileSync(number, "0");
  writeFileSync(log, "");
  let acknowledged = 0;
  let kills = 0;
  let longestWaitMs = 0;
  const running = new Set<Child>();

  // One worker's share; a killed process is replaced by one that does what is left.
  const share = async () => {
    for (let left = EACH; left > 0; ) {
      const child = ground.child("increments", [ground.url, number, log, `${left}`, `${TTL_MS}`]);
      running.add(child);
      for (let line = await child.line(); line !== null; line = await child.line()) {
        left--;
        acknowledged++;
        longestWaitMs = Math.max(longestWaitMs, Number(line.split(" ")[2]));
      }
      running.delete(child);
      await child.exited;
      const { exitCode, signalCode } = child.process;
      assert.ok(exitCode === 0 || signalCode === "SIGKILL", `a worker ended with ${exitCode}`);
    }
  };
  const killer = setInterval(() => {
    const victims = [...running];
    const victim = victims.length > 0 ? victims[randomInt(victims.length)] : undefined;
    if (victim?.process.kill("SIGKILL")) kills++;
  }, KILL_EVERY_MS);
  try {
    await Promise.all(Array.from({ length: PROCESSES }, share));
  } finally {
    clearInterval(killer);
  }

  const final = Number(readFileSync(number, "utf8"));
  const tokens = readFileSync(log, "utf8").trim().split("\n").map(Number);
  console.log(
    `acknowledged ${acknowledged}, final ${final}, kills ${kills}, longest wait ${longestWaitMs.toFixed(0)} ms`,
  );
  assert.ok(kills > 0, "somebody must have been killed for this to mean anything");
  assert.ok(
    acknowledged <= final && final <= acknowledged + kills,
    "increments were lost or doubled",
  );
  for (const [i, token] of tokens.entries()) {
    assert.ok(i === 0 || token > tokens[i - 1]!, `token ${token} after ${tokens[i - 1]}`);
  }
  assert.ok(longestWaitMs <= TTL_MS + 1_000, `somebody waited ${longestWaitMs} ms`);
});
