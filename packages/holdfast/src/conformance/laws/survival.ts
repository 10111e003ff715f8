import assert from "node:assert";
import type { Locks } from "../../locks.js";
import type { LawGroup, Member } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse, outcome, type Settled, within } from "../timing.js";

/** Longer than a ttl: a lease that is still held afterwards was renewed in between. */
const OUTAGE_TTLS = 1.2;
/** The limit for servers that hang, restart and join again one after the other. */
const LONG_MS = 120_000;
const TURN_MS = 30_000;
/** A client may connect to any server of the list first. */
const CONNECTS = 3;

async function locksOf(s: LawContext): Promise<Locks> {
  const { ttlMs } = s.harness.survival!;
  return s.locksOn(await s.engine(), { defaults: { ttlMs } });
}

function reasonOf(settled: Settled<unknown>): string {
  return settled.is === "error" ? String(settled.error) : settled.is;
}

/** Disturbs each server in turn, while a lease is held and somebody waits for it in the queue. */
async function throughEach(
  s: LawContext,
  disturb: (member: Member, ttlMs: number) => Promise<void>,
) {
  const { ttlMs, members } = s.harness.survival!;
  const [holder, other] = [await locksOf(s), await locksOf(s)];
  const resource = s.resource();
  const lease = await holder.acquire(resource, { fair: "strict" });
  const waiting = other.acquire(resource, { waitMs: LONG_MS, fair: "strict" });
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
    "If a backend has several servers and works on without one of them, so do leases, queues and " +
    "new clients, no matter which server it is.",
  laws: [
    law(
      "L22.1",
      "a lease and a waiter outlive each server that hangs",
      ["survival"],
      (s) =>
        throughEach(s, async (member, ttlMs) => {
          const wholeMs = ttlMs * OUTAGE_TTLS;
          const { hangMs = wholeMs } = s.harness.survival!;
          await member.hang();
          try {
            await elapse(hangMs);
          } finally {
            await member.resume();
          }
          await elapse(wholeMs - hangMs);
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
        const { members } = s.harness.survival!;
        for (const member of members) {
          await member.hang();
          try {
            for (let i = 0; i < CONNECTS; i++) {
              const locks = await locksOf(s);
              const visit = locks.run(s.resource(), async (lease) => lease.held);
              const seen = await outcome(visit, LONG_MS);
              assert.equal(seen.is, "value", `no lease without ${member.name}: ${reasonOf(seen)}`);
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
