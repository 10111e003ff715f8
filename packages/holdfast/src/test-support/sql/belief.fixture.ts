// A holder never believes that its grant lasts longer than its row says.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Lease } from "../../core/holding/lease.js";
import type { Call, Claim, Engine } from "../../engine.js";
import type { Locks } from "../../locks.js";

export interface BeliefServer {
  /** Each call gives locks as another process would have them. */
  locks(): Locks;
  engine(): Engine;
  claim(resource: string): Claim;
  now(): Call;
  /** The remaining time in the row of the resource's only holder, by the database's clock. */
  leftMs(resource: string): Promise<number>;
}

// So long that a claim window of three seconds, mistaken for the whole ttl, stands out.
const TTL_MS = 30_000;
const NAMES = 4;

/** Hands a lock from one process to another again and again. Returns how often it did. */
export async function handOver(server: BeliefServer, times: number): Promise<number> {
  const wrong: string[] = [];
  let done = 0;
  const work = Array.from({ length: NAMES }, async (_, i) => {
    const [ours, other] = [server.locks(), server.locks()];
    const resource = `handed-${i}`;
    while (done < times) {
      done++;
      const first = await ours.acquire(resource, { ttlMs: TTL_MS });
      const waiting = other.acquire(resource, { ttlMs: TTL_MS });
      // The release may commit in any phase of the waiter's heartbeats.
      await sleep(randomInt(20, 50));
      await first.release();
      const second = await waiting;
      const { believed, left } = await compare(server, second);
      if (believed > left) wrong.push(`${believed.toFixed()} ms where the row says ${left}`);
      await second.release();
    }
  });
  await Promise.all(work);
  const says = `${wrong.length} of ${done} holders believed too much, such as ${wrong[0]}`;
  assert.equal(wrong.length, 0, says);
  return done;
}

/**
 * Measures again if a renewal was confirmed between the two readings: they would not be comparable.
 */
async function compare(server: BeliefServer, lease: Lease) {
  for (;;) {
    const before = lease.remainingMs();
    const left = await server.leftMs(lease.resource);
    const believed = lease.remainingMs();
    if (believed <= before) return { believed, left };
  }
}

/** A renewal that timed out is sent again while the first is still at the server. */
export async function renewAtOnce(server: BeliefServer, rounds: number): Promise<void> {
  const engine = server.engine();
  const held = server.claim("renewed-at-once");
  assert.equal((await engine.tryAcquire(held, server.now())).kind, "granted");
  const answers: string[] = [];
  for (let round = 0; round < rounds; round++) {
    const renewals = [1, 2, 3].map(() => engine.renew([{ ...held, ttlMs: 10_000 }], server.now()));
    answers.push(...(await Promise.all(renewals)).map(([answer]) => answer!.kind));
  }
  const gone = answers.filter((kind) => kind === "gone").length;
  assert.equal(gone, 0, `${gone} of ${answers.length} said that a live grant is gone`);
  assert.ok(answers.filter((kind) => kind === "renewed").length >= rounds, String(answers));
}
