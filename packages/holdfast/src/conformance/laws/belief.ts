import assert from "node:assert";
import type { Lease } from "../../core/holding/lease.js";
import { systemClock } from "../../core/runtime/clock.js";
import type { Claim, Granted, Mode, Validity } from "../../engine.js";
import type { ConnectOptions } from "../../options.js";
import { type Client, expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse, within } from "../timing.js";

/** Backends count in whole milliseconds, and round in either direction. */
const ROUNDING_MS = 10;
const ROUNDS = 25;
/** Enough to notice an answer that counts from its receipt. */
const AGO_MS = 120;
/** Long for a lock, and still below the maximum of the engines. */
const LONG_MS = 3_600_000;

/** The validity in an answer must end no later than the backend's record says. */
async function isTrue(
  s: LawContext,
  { resource }: Claim,
  answer: Validity,
  how: string,
): Promise<void> {
  const { end } = await s.truth(resource);
  const overMs = answer.since + answer.ttlMs - end;
  assert(
    overMs <= ROUNDING_MS,
    `by ${how} the holder believes ${overMs.toFixed(0)} ms more than the backend has`,
  );
}

/** The same for a lease, with everything that core computes from the answers. */
async function leaseIsTrue(s: LawContext, lease: Lease, how: string): Promise<void> {
  // Belief is read first, because the keeper may renew while the record is being read.
  const { held } = lease;
  const believedEnd = systemClock.now() + lease.remainingMs();
  const { end } = await s.truth(lease.resource);
  const overMs = believedEnd - end;
  assert(
    !held || overMs <= ROUNDING_MS,
    `after ${how} the lease is believed for ${overMs.toFixed(0)} ms more than the backend has`,
  );
}

/** Core without its safety margins, which would hide what it wrongly adds to an answer. */
const BARE: ConnectOptions = { drift: 0, cohort: { ms: 60_000 }, defaults: { graceMs: 0 } };

/** A waiter and the holder before it. */
async function queuedBehind(s: LawContext, a: Client, b: Client, mode: Mode, ttlMs?: number) {
  const resource = s.resource();
  const held = await a.take(resource, ttlMs === undefined ? {} : { ttlMs });
  return { resource, held: held.claim, waiter: await b.wait(resource, { mode }) };
}

export const belief: LawGroup = {
  id: "L19",
  name: "belief",
  text:
    "No matter how a granted or renewed answer came, what the holder believes is at most what the " +
    "backend has: since + ttlMs of the answer is no later than the end in the backend's own record.",
  laws: [
    law(
      "L19.1",
      "an acquired grant is believed for no longer than the record says",
      ["truth"],
      async (s) => {
        const a = await s.client();
        const ttls = [s.ttl(1_500), s.ttl(30_000), s.ttl(90_000), s.ttl(LONG_MS)];
        const wishes = s.traits.modes.flatMap((mode) => ttls.map((ttlMs) => ({ mode, ttlMs })));
        for (const terms of wishes) {
          const claim = a.claim(s.resource(), terms);
          const granted = expectKind(await a.try(claim, a.call(AGO_MS)), "granted", "a free one");
          await isTrue(s, claim, granted, `a ${terms.mode} tryAcquire`);
          assert.equal((await s.truth(claim.resource)).token, granted.token);
        }
      },
    ),

    law("L19.2", "a repeated acquire is believed for no longer", ["truth"], async (s) => {
      const a = await s.client();
      const held = await Promise.all(s.traits.modes.map((mode) => a.take(s.resource(), { mode })));
      await elapse(AGO_MS);
      for (const { claim } of held) {
        await isTrue(s, claim, expectKind(await a.try(claim), "granted", "a repeat"), "a repeat");
        await a.renew(claim, s.ttl(5_000));
        const again = expectKind(await a.try(claim), "granted", "a repeat after a renewal");
        await isTrue(s, claim, again, "a repeat after a shorter renewal");
      }
    }),

    law(
      "L19.3",
      "a renewal is believed for no longer, late ones included",
      ["truth"],
      async (s) => {
        const a = await s.client();
        const ttls = [s.ttl(60_000), s.ttl(5_000), s.ttl(LONG_MS), s.ttl(30_000)];
        for (const { terms, index } of s.variants) {
          const how = `the renewal of a ${terms.mode} grant with index ${index}`;
          const { claim } = await a.take(s.resource(), terms);
          const early = a.call();
          for (const ttlMs of ttls) {
            const renewed = await a.renew(claim, ttlMs, a.call(), { index });
            await isTrue(s, claim, expectKind(renewed, "renewed", how), how);
          }
          const late = await a.renew(claim, s.ttl(90_000), early, { index });
          if (late.kind === "renewed") await isTrue(s, claim, late, `${how} that came too late`);
        }
      },
    ),

    law("L19.4", "a grant by enqueue is believed for no longer", ["truth", "queue"], async (s) => {
      const a = await s.client();
      const claims = s.traits.modes.map((mode) => a.claim(s.resource(), { mode }));
      for (const claim of claims) {
        const granted = expectKind(await a.enqueue(claim, a.call(AGO_MS)), "granted", "a free one");
        await isTrue(s, claim, granted, `a ${claim.mode} enqueue`);
      }
      await elapse(AGO_MS);
      for (const claim of claims) {
        const again = expectKind(await a.enqueue(claim), "granted", "a repeat");
        await isTrue(s, claim, again, `a ${claim.mode} enqueue repeated`);
      }
    }),

    law(
      "L19.5",
      "a grant by heartbeat is believed for no longer",
      ["truth", "queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        for (const mode of s.traits.modes) {
          const { resource, waiter } = await queuedBehind(s, a!, b!, mode, s.lifeMs);
          await s.expire(resource, s.lifeMs, a!);
          const { granted } = await b!.untilGranted(waiter);
          await isTrue(s, waiter, granted, `a ${mode} heartbeat after an expiry`);
          await elapse(AGO_MS);
          const again = expectKind(await b!.heartbeat(waiter), "granted", "a repeated heartbeat");
          await isTrue(s, waiter, again, `a repeated ${mode} heartbeat`);
        }
      },
    ),

    law("L19.6", "a pushed grant is believed for no longer", ["truth", "queue"], async (s) => {
      const [a, b] = await s.clients(2);
      for (const mode of s.traits.modes) {
        const { held, waiter } = await queuedBehind(s, a!, b!, mode);
        await elapse(AGO_MS);
        await a!.releaseHeld(held);
        const deadline = systemClock.now() + 500;
        let pushed: Granted | undefined;
        while (pushed === undefined && systemClock.now() < deadline) {
          await elapse(5);
          pushed = b!.pushed.get(waiter.grantId);
        }
        // A push is optional. Without one, the next heartbeat returns the grant.
        if (pushed !== undefined) await isTrue(s, waiter, pushed, `a ${mode} push`);
        const { granted } = await b!.untilGranted(waiter);
        await isTrue(s, waiter, granted, `the ${mode} heartbeat after a push`);
      }
    }),

    law(
      "L19.7",
      "a grant found by withdrawing is believed for no longer",
      ["truth", "queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        for (const mode of s.traits.modes) {
          const { held, waiter } = await queuedBehind(s, a!, b!, mode);
          await a!.releaseHeld(held);
          await elapse(AGO_MS);
          const granted = expectKind(
            await b!.withdraw(waiter),
            "granted",
            "one that came too late",
          );
          await isTrue(s, waiter, granted, `a ${mode} withdrawal`);
        }
      },
    ),

    law(
      "L19.8",
      "an enqueue repeated at its turn is believed for no longer",
      ["truth", "queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        for (const mode of s.traits.modes) {
          const { held, waiter } = await queuedBehind(s, a!, b!, mode);
          await a!.releaseHeld(held);
          await elapse(AGO_MS);
          const granted = expectKind(await b!.enqueue(waiter), "granted", "the head, asking again");
          await isTrue(s, waiter, granted, `a ${mode} enqueue repeated at its turn`);
        }
      },
    ),

    law(
      "L19.9",
      "a grant that races with its heartbeat is believed for no longer",
      ["truth", "queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        for (let i = 0; i < ROUNDS; i++) {
          const mode = s.traits.modes[i % s.traits.modes.length]!;
          const { held, waiter } = await queuedBehind(s, a!, b!, mode);
          const [released, beat] = await Promise.all([a!.release(held), b!.heartbeat(waiter)]);
          expectKind(released, "released", "the holder's release");
          const granted = beat.kind === "granted" ? beat : (await b!.untilGranted(waiter)).granted;
          await isTrue(s, waiter, granted, "a heartbeat that raced with the release");
          await b!.releaseHeld(waiter);
        }
      },
    ),

    law(
      "L19.10",
      "through the API, a lease that passes between clients is believed for no longer",
      ["truth"],
      async (s) => {
        const [ours, theirs] = [await s.locks(BARE), await s.locks(BARE)];
        const resource = s.resource();
        const ttlMs = s.ttl(12_000);
        let lease = await ours.acquire(resource, { ttlMs });
        for (let i = 0; i < ROUNDS; i++) {
          const next = i % 2 === 0 ? theirs : ours;
          const acquiring = next.acquire(resource, { ttlMs, waitMs: 40_000 });
          await elapse(i % 5);
          await lease.release();
          lease = await within(40_000, acquiring, "the next one");
          await leaseIsTrue(s, lease, "a hand-over");
        }
        await elapse(50);
        await leaseIsTrue(s, lease, "the first renewal");
      },
    ),

    law(
      "L19.11",
      "through the API, a lease handed over inside a process is believed for no longer",
      ["truth"],
      async (s) => {
        const locks = await s.locks(BARE);
        const resource = s.resource();
        const ttlMs = s.ttl(12_000);
        const visit = (_: unknown, i: number) =>
          locks.run(resource, { ttlMs }, async (lease) => {
            await leaseIsTrue(s, lease, "a hand-over inside the process");
            // Long enough to notice a life that counts from the hand-over instead of the last
            // renewal.
            await elapse(AGO_MS);
            if (i % 2 === 1) return;
            await lease.renew();
            await leaseIsTrue(s, lease, "the renewal after it");
          });
        await within(40_000, Promise.all(Array.from({ length: 6 }, visit)), "six local waiters");
      },
    ),

    law(
      "L19.12",
      "through the API, a lease renewed for another ttl is believed for no longer",
      ["truth"],
      async (s) => {
        const locks = await s.locks(BARE);
        const lease = await locks.acquire(s.resource(), { ttlMs: s.ttl(10_000) });
        for (const ttlMs of [s.ttl(60_000), s.ttl(5_000), s.ttl(20_000)]) {
          await lease.renew({ ttlMs });
          await leaseIsTrue(s, lease, "a renewal by hand");
        }
        assert.equal(lease.held, true);
      },
    ),

    law(
      "L19.13",
      "every grant of a renewed batch is believed for no longer",
      ["truth"],
      async (s) => {
        const a = await s.client();
        const batch = await s.batch(a, s.ttl(20_000));
        for (const stepMs of [1_000, -1_000]) {
          const renewed = await a.renewAll(batch, (i) => 60_000 + i * stepMs);
          for (const [i, { claim }] of batch.entries()) {
            await isTrue(s, claim, renewed[i]!, `the renewal of grant ${i} of a batch`);
          }
        }
      },
    ),
  ],
};
