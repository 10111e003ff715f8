import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import type { Failed } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { type Client, expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { elapse, outcome, within } from "../timing.js";
import { lastingTombstoneLaws, TOMBSTONE_MS, tombstoneLaws } from "./tombstones.js";

const SILENCE_MS = 3_000;
/**
 * The wait, how late it may end on a busy machine, and a call timeout that would end it much later.
 */
const WAIT = { waitMs: 500, lateMs: 5_500, callTimeoutMs: 8_000 } as const;

interface Asked {
  readonly verb: string;
  readonly ask: (client: Client) => Promise<unknown>;
}

/** Every call of an engine, about a grant and a waiter that exist. */
function questions(resource: string, grantId: string, token: bigint): Asked[] {
  const ref = { resource, grantId };
  const all: Asked[] = [
    { verb: "tryAcquire", ask: (c) => c.engine.tryAcquire(c.claim(resource), c.call()) },
    { verb: "renew", ask: (c) => c.engine.renew([{ ...ref, ttlMs: 30_000 }], c.call()) },
    { verb: "release", ask: (c) => c.engine.release([{ ...ref, tombstoneMs: 0 }], c.call()) },
    { verb: "check", ask: (c) => c.engine.check({ resource, mode: "exclusive", token }, c.call()) },
    { verb: "revoke", ask: (c) => c.engine.revoke({ resource, token, force: false }, c.call()) },
    { verb: "inspect", ask: (c) => c.engine.inspect(resource, c.call()) },
    { verb: "list", ask: (c) => c.engine.list({ match: "*", cursor: null, max: 9 }, c.call()) },
  ];
  const queued: Asked[] = [
    { verb: "enqueue", ask: (c) => c.queue.enqueue(c.claim(resource), c.call()) },
    { verb: "heartbeat", ask: (c) => c.queue.heartbeat([ref], c.call()) },
    { verb: "withdraw", ask: (c) => c.queue.withdraw(ref, c.call()) },
  ];
  return [...all, ...queued];
}

function isFailed(value: unknown): value is readonly [Failed, ...Failed[]] {
  if (!Array.isArray(value) || value.length === 0) return false;
  return value.every((answer: { kind?: unknown }) => answer.kind === "failed");
}

export const failure: LawGroup = {
  id: "L11",
  name: "honest failure",
  text:
    "Busy and gone are answers of the backend. What keeps an engine from asking it is an " +
    "EngineError, or a failed entry of a batch, that says whether the effect is none or unknown. A " +
    "release with a tombstone refuses the acquire that arrives after it.",
  laws: [
    law(
      "L11.1",
      "a closed engine refuses every call, and says that nothing happened",
      [],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const held = await b!.take(resource);
        await within(10_000, a!.engine.close(), "close()");
        for (const { verb, ask } of questions(resource, held.claim.grantId, held.token)) {
          if (["enqueue", "heartbeat", "withdraw"].includes(verb) && !a!.engine.queue) continue;
          const answer = await outcome(ask(a!), SILENCE_MS);
          const who = `${verb} of a closed engine`;
          if (answer.is === "value" && isFailed(answer.value)) {
            const [{ effect }] = answer.value;
            assert.equal(effect, "none", `${who} has no effect`);
            continue;
          }
          assert.equal(answer.is, "error", `${who} must reject, or fail each entry of a batch`);
          const error = answer.is === "error" ? answer.error : null;
          assert(error instanceof EngineError, `${who} threw ${String(error)}`);
          assert.equal(error.effect, "none", `${who} has no effect`);
        }
        await assert.doesNotReject(within(10_000, a!.engine.close(), "a second close()"));
        await b!.holdersAre(resource, held.token);
      },
    ),

    law(
      "L11.2",
      "a severed engine never answers as if it had asked the backend",
      ["sever"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const held = await a!.take(resource);
        const heal = await s.harness.sever!(a!.engine);
        const asked = questions(resource, held.claim.grantId, held.token).filter(
          ({ verb }) => a!.engine.queue || !["enqueue", "heartbeat", "withdraw"].includes(verb),
        );
        const answers = await Promise.all(
          asked.map(async ({ verb, ask }) => ({
            verb,
            answer: await outcome(ask(a!), SILENCE_MS),
          })),
        );
        for (const { verb, answer } of answers) {
          // Silence is honest too: core's deadline turns it into an unknown effect.
          if (answer.is === "silent") continue;
          if (answer.is === "value") {
            assert(
              isFailed(answer.value),
              `${verb} was answered by ${JSON.stringify(answer.value, plain)}`,
            );
            continue;
          }
          assert(answer.error instanceof EngineError, `${verb} threw ${String(answer.error)}`);
          assert(["none", "unknown"].includes(answer.error.effect));
        }
        await heal();
        await b!.inspect(resource);
      },
    ),

    law("L11.3", "a severed engine works again once it is reconnected", ["sever"], async (s) => {
      const a = await s.client();
      const resource = s.resource();
      await a.releaseHeld((await a.take(resource)).claim);
      const heal = await s.harness.sever!(a.engine);
      await outcome(a.try(a.claim(resource)), 300);
      await heal();
      const claim = a.claim(s.resource("after"));
      for (let tries = 0; ; tries++) {
        const answer = await outcome(a.try(claim), SILENCE_MS);
        if (answer.is === "value") {
          expectKind(answer.value, "granted", "a free resource");
          break;
        }
        assert(tries < 100, "the engine does not recover");
        await elapse(50);
      }
      await a.releaseHeld(claim);
    }),

    law(
      "L11.4",
      "an acquire that was cut off leaves nothing once released with a tombstone",
      ["sever"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const claims = [a!.claim(s.resource("try"))];
        if (a!.engine.queue) claims.push(a!.claim(s.resource("queue")));
        const heal = await s.harness.sever!(a!.engine);
        const sent: Promise<unknown>[] = claims.map((claim, i) =>
          i === 0 ? a!.try(claim) : a!.enqueue(claim),
        );
        await Promise.all(sent.map((work) => outcome(work, 200)));
        await heal();
        for (const claim of claims) {
          await b!.release(claim, TOMBSTONE_MS);
          await elapse(100);
          await s.untilEmpty(b!, claim.resource);
        }
      },
    ),

    ...tombstoneLaws,

    law(
      "L11.10",
      "through the API, an acquire whose answer is lost leaves no grant",
      [],
      async (s) => {
        for (const fair of ["cohort", "strict"] as const) {
          const { locks, flaky } = await s.flakyLocks();
          const resource = s.resource(fair);
          for (const verb of ["tryAcquire", "enqueue"] as const) {
            flaky.inject(verb, { kind: "lose-reply" });
          }
          await assert.rejects(locks.acquire(resource, { fair }), EngineError);
          await s.untilEmpty(await s.client(), resource);
          const retried = s.resource(`${fair}-retried`);
          flaky.inject(flaky.queue ? "enqueue" : "tryAcquire", { kind: "lose-reply" }, 2);
          const lease = await locks.acquire(retried, { fair, retry: [5, 5, 5] });
          const { holders } = await locks.inspect(retried);
          assert.deepEqual(
            holders.map((holder) => holder.token),
            [lease.token],
          );
          assert.equal(await lease.release(), "released");
          await s.untilEmpty(await s.client(), retried);
        }
      },
    ),

    law(
      "L11.11",
      "through the API, a release whose answer is lost is sent again",
      [],
      async (s) => {
        const { locks, flaky } = await s.flakyLocks();
        const other = await s.locks();
        for (const kind of ["lose-reply", "fail"] as const) {
          const resource = s.resource(kind);
          const lease = await locks.acquire(resource);
          flaky.inject("release", { kind });
          await lease.release();
          assert(await other.tryAcquire(resource), "the resource is free after the release");
        }
      },
    ),

    law(
      "L11.12",
      "through the API, a wait ends after waitMs although the backend does not answer",
      ["relay"],
      async (s) => {
        const { waitMs, lateMs, callTimeoutMs } = WAIT;
        const other = await s.client();
        for (const mode of s.traits.modes) {
          for (const fair of ["cohort", "strict"] as const) {
            for (const taken of [false, true]) {
              const { client, hold, deliver } = await s.relayed();
              const locks = s.locksOn(client.engine);
              const resource = s.resource(`${mode}-${fair}-${taken}`);
              const held = taken ? await other.take(resource) : null;
              if (!taken) await hold();
              const startedAt = systemClock.now();
              const work = locks.acquire(resource, { mode, fair, waitMs, callTimeoutMs });
              const asked = outcome(work, callTimeoutMs);
              // By then the claim is in the queue, or pauses before its next poll.
              if (taken) await elapse(100);
              if (taken) await hold();
              const answer = await asked;
              const tookMs = Math.round(systemClock.now() - startedAt);
              assert.equal(answer.is, "error", "the wait must end, and without a grant");
              assert(tookMs < lateMs, `a wait of ${waitMs} ms took ${tookMs} ms`);
              if (!taken && answer.is === "error") {
                assert(answer.error instanceof EngineError, "silence is not busy");
              }
              await deliver();
              if (held !== null) await other.releaseHeld(held.claim);
              await s.untilEmpty(other, resource);
            }
          }
        }
      },
      60_000,
    ),
    ...lastingTombstoneLaws,
  ],
};

function plain(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}
