import assert from "node:assert";
import type { LawGroup, Member } from "../harness.js";
import { elapse, within } from "../patience.js";
import { law, type Stage } from "../stage.js";

/** Longer than a ttl: who still holds afterwards was renewed without that server. */
const OUTAGE_TTLS = 1.2;
/** For servers that hang, restart and join again one after the other. */
const LONG_MS = 120_000;
const TURN_MS = 30_000;
/** A client may begin with any server of the list. */
const CONNECTS = 3;

/** Each server in turn is disturbed, while a lease is held and somebody waits for it in line. */
async function throughEach(s: Stage, disturb: (member: Member, ttlMs: number) => Promise<void>) {
  const { ttlMs, members } = s.harness.survival!;
  const [holder, other] = [await s.locks(), await s.locks()];
  const resource = s.resource();
  const lease = await holder.acquire(resource, { ttlMs, fair: "strict" });
  const waiting = other.acquire(resource, { ttlMs, waitMs: LONG_MS, fair: "strict" });
  waiting.catch(() => {});
  await s.untilWaiters(other, resource, 1);
  for (const member of members) {
    await disturb(member, ttlMs);
    assert.equal(
      lease.held,
      true,
      `the lease was lost with ${member.name}: ${lease.signal.reason}`,
    );
  }
  assert.equal(await lease.release(), "released");
  const next = await within(TURN_MS, waiting, "the waiter's turn");
  assert(next.token > lease.token, "tokens rise");
}

export const survival: LawGroup = {
  id: "L22",
  name: "survival",
  text:
    "Where a backend has several servers and goes on without one of them, so do leases, queues and " +
    "clients that connect, whichever server it is.",
  laws: [
    law(
      "L22.1",
      "a lease and a waiter outlive each server that hangs for longer than the ttl",
      ["survival"],
      (s) =>
        throughEach(s, async (member, ttlMs) => {
          await member.hang();
          try {
            await elapse(ttlMs * OUTAGE_TTLS);
          } finally {
            await member.resume();
          }
        }),
      LONG_MS,
    ),

    law(
      "L22.2",
      "a lease and a waiter outlive each server that is restarted",
      ["survival"],
      (s) =>
        throughEach(s, async (member, ttlMs) => {
          await member.restart();
          await elapse(ttlMs * OUTAGE_TTLS);
        }),
      LONG_MS,
    ),

    law(
      "L22.3",
      "a client connects and acquires while any one server hangs",
      ["survival"],
      async (s) => {
        const { ttlMs, members } = s.harness.survival!;
        for (const member of members) {
          await member.hang();
          try {
            for (let i = 0; i < CONNECTS; i++) {
              const locks = await s.locks();
              const lease = await locks.acquire(s.resource(), { ttlMs });
              assert.equal(await lease.release(), "released");
            }
          } finally {
            await member.resume();
          }
        }
      },
      LONG_MS,
    ),
  ],
};
