// The database is killed again and again while locks go from hand to hand: no token comes twice.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locks } from "../../locks.js";

export interface KilledGround {
  /** Each as another process would have it. */
  locks(): Locks;
  /** Restarting kills it first. */
  readonly server: { restart(): Promise<void> };
}

const KILLS = 100;
const NAMES = 4;
// A grant whose release was lost with the server keeps the others out until its ttl ends.
const TTL_MS = 1_000;
const BETWEEN_KILLS = 12;
const BACK_WITHIN_MS = 60_000;

export function playKillsOfHandOvers(
  play: (title: string, part: (ground: KilledGround) => Promise<void>) => void,
): void {
  play(`no token comes twice across ${KILLS} kills while locks are handed over`, async (ground) => {
    const leases = await killHandOvers(ground, KILLS);
    console.log(`${leases} leases across ${KILLS} kills, every token greater than the one before`);
  });
}

/** Gives how many leases there were. */
async function killHandOvers(ground: KilledGround, kills: number): Promise<number> {
  let leases = 0;
  let over = false;
  const work = Array.from({ length: NAMES }, (_, i) => {
    let highest = 0n;
    return [1, 2].map(async () => {
      const locks = ground.locks();
      const retry = { [Symbol.iterator]: forever };
      const options = { retry, waitMs: 120_000, ttlMs: TTL_MS, fair: "strict" } as const;
      while (!over) {
        const lease = await locks.acquire(`name-${i}`, options);
        assert.ok(lease.token > highest, `token ${lease.token} came after ${highest}`);
        highest = lease.token;
        leases++;
        // So that the other one is in the queue when it is given back.
        await sleep(randomInt(5, 30));
        await lease.release().catch(() => {});
      }
    });
  });
  const all = Promise.all(work.flat());
  all.catch(() => {});
  for (let kill = 0; kill < kills; kill++) {
    const enough = leases + BETWEEN_KILLS;
    const deadline = performance.now() + BACK_WITHIN_MS;
    while (leases < enough) {
      assert.ok(performance.now() < deadline, `nobody got on after kill ${kill}`);
      await Promise.race([sleep(5), all]);
    }
    await sleep(randomInt(0, 50));
    await ground.server.restart();
  }
  over = true;
  await all;
  return leases;
}

function* forever(): Generator<number> {
  for (;;) yield 20;
}
