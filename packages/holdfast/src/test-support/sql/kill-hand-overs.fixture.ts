// The database is killed again and again while locks are handed over: no token is given twice.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Locks } from "../../locks.js";

export interface KilledServer {
  /** Each call gives locks as another process would have them. */
  locks(): Locks;
  /** restart() kills the server first. */
  readonly instance: { restart(): Promise<void> };
}

const KILLS = 100;
const NAMES = 4;
// A grant whose release was lost with the server excludes others until its ttl ends.
const TTL_MS = 1_000;
const BETWEEN_KILLS = 12;
const BACK_WITHIN_MS = 60_000;

export function testKillsOfHandOvers(
  it: (title: string, part: (server: KilledServer) => Promise<void>) => void,
): void {
  it(`no token is given twice across ${KILLS} kills while locks are handed over`, async (server) => {
    const leases = await killHandOvers(server, KILLS);
    console.log(`${leases} leases across ${KILLS} kills, every token greater than the one before`);
  });
}

/** Returns how many leases there were. */
async function killHandOvers(server: KilledServer, kills: number): Promise<number> {
  let leases = 0;
  let over = false;
  const work = Array.from({ length: NAMES }, (_, i) => {
    let highest = 0n;
    return [1, 2].map(async () => {
      const locks = server.locks();
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
    await server.instance.restart();
  }
  over = true;
  await all;
  return leases;
}

function* forever(): Generator<number> {
  for (;;) yield 20;
}
