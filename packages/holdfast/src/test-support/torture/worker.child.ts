// One process of a torture test: worker <job as JSON>. It acquires, tries, aborts, renews, revokes
// and releases at random, holds many leases at once and runs things once. It logs when it believed
// to hold what, and counts in a register of its parent, until it is told to stop.
import { openSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../connect.js";
import { exponential } from "../../core/acquiring/retry.js";
import type { Lease } from "../../core/holding/lease.js";
import { hostInstant } from "../../core/runtime/clock.js";
import { EngineError, HoldfastError, LeaseLostError } from "../../errors.js";
import type { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";
import { type Random, randomOf } from "../seeded-random.fixture.js";
import { COUNTED, type LogEntry, type WorkerJob } from "./history.fixture.js";
import type { Asked, RegisterAnswer } from "./register.fixture.js";

const SIGHT_EVERY_MS = 8;
const GROUP_SIGHT_EVERY_MS = 60;
const GROUP = 30;
/** A killed server needs half a minute on a busy machine. */
const CONNECTS = 300;
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
const kind = (wanted: string | undefined) => job.resources.filter((one) => one.kind === wanted);
const loops = Array.from({ length: job.loops }, (_, i) => loop(randomOf(job.seed * 97 + i)));
await Promise.all([
  ...loops,
  groups(randomOf(job.seed * 97 + 50)),
  nights(randomOf(job.seed + 51)),
]);
await locks.close();
process.exit(0);

/** Written synchronously, so that nothing is lost when the process is killed. */
function note(entry: LogEntry): void {
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

/** Logs an acquire that ended without a lease. The reason of an abort is no failure. */
function ended(error: unknown): void {
  if (!(error instanceof HoldfastError) && error !== ABORTED) throw error;
  const code = error instanceof HoldfastError ? error.code : String(error);
  note({ e: "ended", code, at: hostInstant() });
}

async function loop(random: Random): Promise<void> {
  const resources = kind(undefined);
  while (!enough) {
    const resource = resources[random(resources.length)]!;
    const shared = resource.limit !== 0 && (resource.limit !== null || random(3) > 0);
    const options: AcquireOptions = {
      ...(shared ? { mode: "shared" } : {}),
      ...(shared && resource.limit !== null ? { limit: resource.limit } : {}),
      ...(resource.lockDelayMs > 0 ? { lockDelayMs: resource.lockDelayMs } : {}),
      ...(random(2) === 0 && !shared ? { fair: "strict" } : {}),
      ...(random(8) === 0 ? { renew: false } : {}),
      ...(random(8) === 0 ? { maxHoldMs: 1 + random(job.ttlMs * 2) } : {}),
    };
    // All claims on a semaphore have one limit, so nobody takes it exclusively.
    try {
      const lease = await ask(resource.name, options, random);
      if (lease === null) note({ e: "ended", code: "BUSY", at: hostInstant() });
      else await hold(lease, random);
    } catch (error) {
      ended(error);
      await sleep(random(20));
    }
  }
}

/** Holds many leases for several ttls: they are renewed together. */
async function groups(random: Random): Promise<void> {
  while (!enough) {
    const held = new Map<string, Lease>();
    const look = () => {
      for (const [id, lease] of held) see(id, lease);
    };
    const sights = setInterval(look, GROUP_SIGHT_EVERY_MS);
    const until = hostInstant() + job.ttlMs * (1 + random(3));
    for (const { name } of shuffled(kind("group"), random)) {
      if (enough || held.size === GROUP || hostInstant() > until) break;
      const lease = await locks.tryAcquire(name).catch(ended);
      if (lease) held.set(idOf(), lease);
    }
    while (!enough && hostInstant() < until) await sleep(20);
    look();
    clearInterval(sights);
    await Promise.all([...held].map(([id, lease]) => releaseLease(id, lease).catch(ended)));
    await sleep(random(100));
  }
}

/** Runs under leases without renewal, and keeps others out for a while after them. */
async function nights(random: Random): Promise<void> {
  const [nightly] = kind("once");
  while (!enough && nightly !== undefined && locks.engine.traits.leaves) {
    const from = hostInstant();
    const times = { atMostMs: job.ttlMs, atLeastMs: random(Math.ceil(job.ttlMs / 2)) };
    const run = async (lease: Lease) => {
      const id = idOf();
      note({ e: "keeps", lease: id, until: from + times.atLeastMs });
      see(id, lease);
      await sleep(random(20) === 0 ? random(job.ttlMs * 1.2) : random(40));
      see(id, lease);
    };
    await locks.once(nightly.name, times, run).catch(ended);
    await sleep(random(40));
  }
}

function shuffled<T>(all: readonly T[], random: Random): T[] {
  const ranked = all.map((one) => ({ one, rank: random(1_000_000) }));
  return ranked.sort((a, b) => a.rank - b.rank).map(({ one }) => one);
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
  const id = idOf();
  const look = () => see(id, lease);
  look();
  const sights = setInterval(look, SIGHT_EVERY_MS);
  try {
    if (lease.resource === COUNTED) await count(lease, random);
    else await work(id, lease, random);
    look();
  } finally {
    clearInterval(sights);
    await releaseLease(id, lease);
  }
}

function idOf(): string {
  return `${process.pid} ${++leases}`;
}

/**
 * A lost lease is not released, so its lock-delay follows. A revoked one is released, because its
 * revocation waits for that.
 */
async function releaseLease(id: string, lease: Lease): Promise<void> {
  const { reason } = lease.signal;
  const isRevoked = reason instanceof LeaseLostError && reason.reason === "revoked";
  if (lease.held || isRevoked) note({ e: "gives-back", lease: id });
  await lease.release();
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
  else if (dice === 38) await revokeAnother(lease, random);
  else await sleep(random(60));
}

/** Readers are also revoked by force: they hand nothing over, so it is known whose belief ends. */
async function revokeAnother({ resource }: Lease, random: Random): Promise<void> {
  const { holders } = await locks.inspect(resource);
  const victim = holders[random(holders.length)];
  if (victim === undefined) return;
  const { token, mode } = victim;
  const force = mode === "shared" && random(2) === 0;
  if (force) note({ e: "forced", resource, token: String(token) });
  await locks.revoke(resource, { token, force });
}

/** Registers its token before it reads; the register checks the token at the write. */
async function count(lease: Lease, random: Random): Promise<void> {
  const value = await askRegister("read", lease.token);
  if (value === null) return;
  await sleep(random(12));
  // Every second time it does not call assertHeld, and only the register protects the number.
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
