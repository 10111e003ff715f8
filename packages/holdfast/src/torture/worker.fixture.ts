// One process of the torture: worker <job as JSON>. It acquires, tries, aborts, renews, revokes and
// releases at random, writes down when it believed to hold what, and counts in a register that its
// parent keeps, until it is told that it is enough.
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { type Random, randomOf } from "../chance.fixture.js";
import { hostInstant } from "../clock.js";
import { connect } from "../connect.js";
import { EngineError, HoldfastError } from "../errors.js";
import type { Lease } from "../lease.js";
import type { Locks } from "../locks.js";
import type { AcquireOptions } from "../options.js";
import { exponential } from "../retry.js";
import { COUNTED, type Entry, type WorkerJob } from "./history.fixture.js";
import type { Asked, RegisterAnswer } from "./register.fixture.js";

const SIGHT_EVERY_MS = 8;
const CONNECTS = 30;
const ABORTED = "aborted";
const job = JSON.parse(process.argv[2] ?? "{}") as WorkerJob;
const log = openSync(job.log, "a");
const locks = await open();
let enough = false;
let leases = 0;
let questions = 0;
const waiting = new Map<number, (answer: RegisterAnswer) => void>();

process.on("message", (message: RegisterAnswer | "enough") => {
  if (message === "enough") enough = true;
  else waiting.get(message.id)?.(message);
});
process.on("disconnect", () => process.exit(1));
await Promise.all(Array.from({ length: job.loops }, (_, i) => loop(randomOf(job.seed * 97 + i))));
await locks.close();
process.exit(0);

/** Written at once, so that nothing is lost with a process that is killed. */
function note(entry: Entry): void {
  writeSync(log, `${JSON.stringify(entry)}\n`);
}

async function open(): Promise<Locks> {
  const defaults = { ttlMs: job.ttlMs, callTimeoutMs: 1_500 };
  for (let tries = 1; ; tries++) {
    try {
      return await connect(job.url, { defaults });
    } catch (error) {
      if (tries === CONNECTS || !(error instanceof EngineError && error.retryable)) throw error;
      await sleep(100);
    }
  }
}

async function loop(random: Random): Promise<void> {
  while (!enough) {
    const resource = job.resources[random(job.resources.length)]!;
    const shared = resource.limit !== 0 && (resource.limit !== null || random(3) > 0);
    const options: AcquireOptions = {
      ...(shared ? { mode: "shared" } : {}),
      ...(shared && resource.limit !== null ? { limit: resource.limit } : {}),
      ...(resource.lockDelayMs > 0 ? { lockDelayMs: resource.lockDelayMs } : {}),
      ...(random(2) === 0 && !shared ? { fair: "strict" } : {}),
    };
    // Of a semaphore all claims have one limit, so nobody takes it exclusively.
    try {
      const lease = await ask(resource.name, options, random);
      if (lease === null) note({ e: "ended", code: "BUSY", at: hostInstant() });
      else await hold(lease, random);
    } catch (error) {
      // The reason of an abort is nobody's failure.
      const code = error instanceof HoldfastError ? error.code : String(error);
      if (!(error instanceof HoldfastError) && error !== ABORTED) throw error;
      note({ e: "ended", code, at: hostInstant() });
      await sleep(random(20));
    }
  }
}

async function ask(name: string, options: AcquireOptions, random: Random): Promise<Lease | null> {
  const dice = random(20);
  if (dice < 4) return locks.tryAcquire(name, options);
  const retry = exponential({ minMs: 10, maxMs: 200 });
  if (dice < 6) return locks.acquire(name, { ...options, retry, waitMs: random(40) });
  const patient = { ...options, retry, waitMs: 15_000 };
  if (dice > 7) return locks.acquire(name, patient);
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(ABORTED), random(30));
  try {
    return await locks.acquire(name, { ...patient, signal: controller.signal });
  } finally {
    clearTimeout(timer);
  }
}

async function hold(lease: Lease, random: Random): Promise<void> {
  const id = `${process.pid} ${++leases}`;
  const look = () => see(id, lease);
  look();
  const sights = setInterval(look, SIGHT_EVERY_MS);
  try {
    if (lease.resource === COUNTED) await count(lease, random);
    else await work(id, lease, random);
    look();
  } finally {
    clearInterval(sights);
    await lease.release();
  }
}

function see(id: string, lease: Lease): void {
  const from = hostInstant();
  const held = lease.held;
  const remainingMs = lease.remainingMs();
  const to = hostInstant();
  if (!held || remainingMs === 0) return;
  const { resource, mode, token } = lease;
  const until = from + remainingMs;
  note({ e: "held", lease: id, resource, mode, token: String(token), from, to, until });
}

async function work(id: string, lease: Lease, random: Random): Promise<void> {
  const dice = random(40);
  if (dice === 0) await sleep(random(job.ttlMs));
  else if (dice < 30) await sleep(random(12));
  else if (dice < 33) await lease.renew();
  else if (dice < 36) await lease.renew({ ttlMs: job.ttlMs * 2 });
  else if (dice === 36) {
    note({ e: "shrinks", lease: id });
    await lease.renew({ ttlMs: Math.ceil(job.ttlMs * 0.7) });
  } else if (dice === 37) await locks.revoke(lease.resource, { token: lease.token });
  else await sleep(random(60));
}

/** Registers its token before it reads, and is checked where it writes. */
async function count(lease: Lease, random: Random): Promise<void> {
  const value = await askRegister("read", lease.token);
  if (value === null) return;
  await sleep(random(12));
  // Every second time it forgets to ask, and the register alone stands before the number.
  if (random(2) === 0) lease.assertHeld();
  await askRegister("write", lease.token, value + 1);
}

function askRegister(verb: Asked["verb"], token: bigint, value = 0): Promise<number | null> {
  const id = ++questions;
  return new Promise((resolve) => {
    waiting.set(id, (answer) => {
      waiting.delete(id);
      resolve(answer.value);
    });
    process.send!({ id, verb, token: String(token), value } satisfies Asked);
  });
}
