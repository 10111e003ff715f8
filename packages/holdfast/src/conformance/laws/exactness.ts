import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import { EngineError } from "../../errors.js";
import { type Client, expectKind } from "../client.js";
import type { LawGroup, Need } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse, outcome, within } from "../timing.js";
import { TOMBSTONE_MS } from "./tombstones.js";

const WAIT_MS = 12_000;
const MEND_MS = 15_000;

interface Garbled {
  readonly s: LawContext;
  /** The client whose answers are garbled while `ask` runs. */
  readonly client: Client;
  readonly other: Client;
  readonly resource: string;
}

interface Case<T> {
  /** Runs while answers are right. */
  prepare(on: Garbled): Promise<T>;
  ask(on: Garbled, prepared: T): Promise<unknown>;
  /** Runs when answers are right again. The state must be as before, or possible to clean up. */
  after(on: Garbled, prepared: T): Promise<void>;
  /** Set for calls that only read: they have no effect that could be unknown. */
  readonly reads?: true;
}

/** A failure with unknown effect: thrown, or in each entry of a batch. */
function assertHonest(value: unknown, shape: string, reads: boolean): void {
  const effects = Array.isArray(value)
    ? value.map((answer: { kind?: unknown; effect?: unknown }) =>
        answer.kind === "failed" ? answer.effect : `${String(answer.kind)}, which is an answer`,
      )
    : [value instanceof EngineError ? value.effect : String(value)];
  assert(effects.length > 0, `the answer "${shape}" was taken for an empty list`);
  for (const effect of effects) {
    if (reads && effect === "none") continue;
    assert.equal(effect, "unknown", `the answer "${shape}" was taken for ${String(effect)}`);
  }
}

function garbled<T>(id: string, title: string, needs: readonly Need[], one: Case<T>) {
  return law(id, title, ["misanswer", ...needs], async (s) => {
    const other = await s.client();
    const { client, shapes, answerWith } = await s.misanswered();
    assert(shapes.length > 0, "a harness that can garble answers names the shapes");
    for (const shape of shapes) {
      const on = { s, client, other, resource: s.resource(shape) };
      const prepared = await one.prepare(on);
      answerWith(shape);
      const answer = await outcome(one.ask(on, prepared), WAIT_MS);
      answerWith(null);
      assert.notEqual(answer.is, "silent", `"${shape}" must be noticed within the call's time`);
      const value = answer.is === "error" ? answer.error : answer.is === "value" && answer.value;
      assertHonest(value, shape, one.reads === true);
      await one.after(on, prepared);
    }
  });
}

/** A connection that sent nonsense may be replaced by a new one, which takes a moment. */
async function eventually<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = systemClock.now() + MEND_MS;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof EngineError) || systemClock.now() > deadline) throw error;
      await elapse(50);
    }
  }
}

/** Cleans up like core after a claim whose answer it did not understand; then nothing is left. */
async function cleanedUp({ s, client, other, resource }: Garbled, grantId: string): Promise<void> {
  await eventually(() => client.release({ resource, grantId }, TOMBSTONE_MS));
  await s.untilEmpty(other, resource);
  const { claim } = await other.take(resource);
  await other.releaseHeld(claim);
}

/** The grant still exists, and still belongs to this holder. */
async function stillHeld({ client, other, resource }: Garbled, grantId: string): Promise<void> {
  await other.refused(resource, {}, "a claim beside a holder whose answer was garbled");
  const renewed = await eventually(() => client.renew({ resource, grantId }));
  expectKind(renewed, "renewed", "the holder, once answers are right");
  await eventually(() => client.release({ resource, grantId }, TOMBSTONE_MS));
}

const taken = async ({ client, resource }: Garbled) => (await client.take(resource)).claim;

const waiting = async ({ client, other, resource }: Garbled) => {
  const { claim: held } = await other.take(resource);
  return { held, waiter: await client.wait(resource) };
};

const waiterCleanedUp = async (
  on: Garbled,
  { held, waiter }: Awaited<ReturnType<typeof waiting>>,
) => {
  await on.other.release(held);
  await cleanedUp(on, waiter.grantId);
};

export const exactness: LawGroup = {
  id: "L20",
  name: "exactness",
  text:
    "Every answer is decoded by its exact shape. An answer of any other shape (a string for a list, " +
    "a short list, a buffer, null, QUEUED) is a failure whose effect is unknown, never a yes, a no " +
    "or an empty list, and what it may have left behind is cleaned up as after a lost answer.",
  laws: [
    garbled("L20.1", "a garbled answer to tryAcquire is a failure", [], {
      prepare: async ({ client, resource }) => client.claim(resource),
      ask: ({ client }, claim) => client.try(claim),
      after: (on, claim) => cleanedUp(on, claim.grantId),
    }),

    garbled("L20.2", "a garbled answer to enqueue is a failure", ["queue"], {
      prepare: async ({ client, resource }) => client.claim(resource),
      ask: ({ client }, claim) => client.enqueue(claim),
      after: (on, claim) => cleanedUp(on, claim.grantId),
    }),

    garbled("L20.3", "a garbled answer to a heartbeat is a failure", ["queue"], {
      prepare: waiting,
      ask: ({ client }, { waiter }) => client.heartbeats([waiter]),
      after: waiterCleanedUp,
    }),

    garbled("L20.4", "a garbled answer to withdraw is a failure", ["queue"], {
      prepare: waiting,
      ask: ({ client }, { waiter }) => client.withdraw(waiter),
      after: waiterCleanedUp,
    }),

    garbled("L20.5", "a garbled answer to a renewal is a failure, and no renewal", [], {
      prepare: taken,
      ask: async ({ client }, claim) => [await client.renew(claim)],
      after: (on, claim) => stillHeld(on, claim.grantId),
    }),

    garbled("L20.6", "garbled answers to a batch are a failure of each entry", [], {
      prepare: async (on) => {
        const claims = [await taken(on)];
        for (let i = 0; i < 8; i++) claims.push((await on.client.take(on.s.resource())).claim);
        return claims;
      },
      ask: ({ client, s }, claims) => {
        const refs = claims.map(({ resource, grantId }) => ({ resource, grantId }));
        const ttlMs = s.ttl(30_000);
        return client.engine.renew(
          refs.map((ref) => ({ ...ref, ttlMs })),
          client.call(),
        );
      },
      after: (on, [claim]) => stillHeld(on, claim!.grantId),
    }),

    garbled("L20.7", "a garbled answer to a release is a failure", [], {
      prepare: taken,
      ask: async ({ client }, claim) => [await client.release(claim)],
      after: (on, claim) => cleanedUp(on, claim.grantId),
    }),

    garbled("L20.8", "a garbled answer to check is neither yes nor no", [], {
      reads: true,
      prepare: async ({ client, resource }) => client.take(resource),
      ask: ({ client, resource }, { token }) => client.check(resource, token),
      after: (on, { claim }) => stillHeld(on, claim.grantId),
    }),

    garbled("L20.9", "a garbled answer to revoke is neither revoked nor gone", [], {
      prepare: async ({ client, resource }) => client.take(resource),
      ask: ({ client, resource }, { token }) => client.revoke(resource, token),
      after: (on, { claim }) => cleanedUp(on, claim.grantId),
    }),

    garbled("L20.10", "a garbled view is a failure, not an empty view", [], {
      reads: true,
      prepare: taken,
      ask: async ({ client, resource }) => {
        const looks = [
          () => client.inspect(resource),
          () => client.engine.list({ match: "*", cursor: null, max: 9 }, client.call()),
        ];
        const errors: unknown[] = [];
        for (const look of looks) {
          const answer = await outcome<unknown>(look(), WAIT_MS);
          const value = answer.is === "error" ? answer.error : "a view";
          errors.push(value instanceof EngineError ? { kind: "failed", ...value } : value);
        }
        return errors;
      },
      after: (on, claim) => stillHeld(on, claim.grantId),
    }),

    law(
      "L20.11",
      "through the API, a lease is lost in time while the answers to its renewals are garbled",
      ["misanswer"],
      async (s) => {
        const { client, shapes, answerWith } = await s.misanswered();
        const locks = s.locksOn(client.engine);
        for (const shape of shapes.slice(0, 2)) {
          const resource = s.resource(shape);
          const ttlMs = s.ttl(900);
          const lease = await eventually(() => locks.acquire(resource, { ttlMs }));
          answerWith(shape);
          await elapse(ttlMs);
          assert.equal(lease.held, false, `"${shape}" was taken for a renewal`);
          answerWith(null);
          await lease.release();
        }
      },
    ),

    law(
      "L20.12",
      "through the API, an acquire whose answer is garbled leaves nothing behind",
      ["misanswer"],
      async (s) => {
        const other = await s.client();
        const { client, shapes, answerWith } = await s.misanswered();
        const locks = s.locksOn(client.engine);
        for (const shape of shapes) {
          const resource = s.resource(shape);
          answerWith(shape);
          const wait = { waitMs: 3_000, callTimeoutMs: 3_000 };
          const acquiring = locks.acquire(resource, wait);
          await assert.rejects(
            within(WAIT_MS, acquiring, `acquire, answered "${shape}"`),
            EngineError,
          );
          answerWith(null);
          await elapse(100);
          await s.untilEmpty(other, resource);
        }
      },
    ),
  ],
};
