import assert from "node:assert";
import type { Call } from "../../engine.js";
import { assertRising, type Client, expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { elapse, outcome } from "../timing.js";
import { repeatedCallLaws } from "./repeated-calls.js";
import { TOMBSTONE_MS } from "./tombstones.js";

/** The call timeout of these laws; core gives up a delayed request after it. */
const DEADLINE_MS = 150;
const GAVE_UP_MS = 1_000;
/** Time for a delivered request to be carried out. */
const ARRIVAL_MS = 150;

/**
 * Sends a request that is delayed until after its deadline; returns a function that delivers it.
 */
async function overdue<T>(
  s: LawContext,
  prepare: (client: Client) => Promise<T>,
  ask: (client: Client, prepared: T, call: Call) => Promise<unknown>,
): Promise<{ readonly prepared: T; deliver(): Promise<void> }> {
  const { client, hold, deliver } = await s.relayed();
  const prepared = await prepare(client);
  await hold();
  const asked = outcome(
    ask(client, prepared, { ...client.call(), timeoutMs: DEADLINE_MS }),
    20_000,
  );
  await Promise.race([asked, elapse(GAVE_UP_MS)]);
  return {
    prepared,
    deliver: async () => {
      await deliver();
      await elapse(ARRIVAL_MS);
    },
  };
}

export const late: LawGroup = {
  id: "L21",
  name: "late and repeated calls",
  text:
    "A request may arrive after its sender gave up, after later ones, or twice at once. Whenever it " +
    "arrives, it ends no other grant, revives nothing, undoes nothing that was answered, and " +
    "leaves nothing behind that core does not know of.",
  laws: [
    law(
      "L21.1",
      "an acquire that arrives after core gave it up is refused",
      ["relay"],
      async (s) => {
        const b = await s.client();
        const resource = s.resource();
        const { prepared, deliver } = await overdue(
          s,
          async (client) => client.claim(resource),
          (client, claim, call) => client.try(claim, call),
        );
        await b.release(prepared, TOMBSTONE_MS);
        await deliver();
        await s.untilEmpty(b, resource);
        await b.take(resource);
      },
    ),

    law(
      "L21.2",
      "an enqueue that arrives after core gave it up leaves no waiter",
      ["relay", "queue"],
      async (s) => {
        const b = await s.client();
        const resource = s.resource();
        const held = await b.take(resource);
        const { prepared, deliver } = await overdue(
          s,
          async (client) => client.claim(resource),
          (client, claim, call) => client.enqueue(claim, call),
        );
        await b.release(prepared, TOMBSTONE_MS);
        await deliver();
        // Some engines create the waiter and remove it again. A waiter that stays is silent, and
        // would stay for 10 s.
        for (let tries = 0; (await b.inspect(resource)).waiters.length > 0; tries++) {
          assert(tries < 30, "a claim that core gave up is in the queue");
          await elapse(100);
        }
        await b.releaseHeld(held.claim);
        await s.untilEmpty(b, resource);
      },
    ),

    law("L21.3", "an acquire that arrives late gets no used token", ["relay"], async (s) => {
      const b = await s.client();
      const resource = s.resource();
      const { prepared, deliver } = await overdue(
        s,
        async (client) => client.claim(resource),
        (client, claim, call) => client.try(claim, call),
      );
      const tokens: bigint[] = [];
      for (let i = 0; i < 3; i++) {
        const { claim, token } = await b.take(resource);
        tokens.push(token);
        if (i < 2) await b.releaseHeld(claim);
      }
      await deliver();
      await b.holdersAre(resource, tokens.at(-1)!);
      await b.release(prepared, TOMBSTONE_MS);
      assertRising(tokens);
    }),

    law(
      "L21.4",
      "a release that arrives late does not end a successor's grant",
      ["relay", "ttl"],
      async (s) => {
        const b = await s.client();
        const resource = s.resource();
        const { deliver } = await overdue(
          s,
          (client) => client.take(resource, { ttlMs: s.lifeMs }),
          (client, { claim }) => client.release(claim),
        );
        await s.pass(resource, s.lifeMs + 5);
        // The record is created again, often enough for anything in it to repeat.
        for (let i = 0; i < 2; i++) await b.releaseHeld((await b.take(resource)).claim);
        const live = await b.take(resource);
        await deliver();
        await b.holdersAre(resource, live.token);
        expectKind(await b.renew(live.claim), "renewed", "the successor");
        await (await s.client()).refused(resource);
      },
    ),

    law(
      "L21.5",
      "a renewal that arrives late does not undo a later one",
      ["relay", "ttl"],
      async (s) => {
        const b = await s.client();
        const resource = s.resource();
        const { prepared, deliver } = await overdue(
          s,
          async (client) => (await client.take(resource, { ttlMs: s.ttl(20_000) })).claim,
          (client, claim, call) => client.renew(claim, s.ttl(5_000), call),
        );
        expectKind(await b.renew(prepared, s.ttl(60_000)), "renewed", "a later renewal");
        await deliver();
        const [holder] = (await b.inspect(resource)).holders;
        assert((holder?.remainingMs ?? 0) > 30_000, "the later renewal gave a minute");
      },
    ),

    law(
      "L21.6",
      "a renewal that arrives after its grant ended revives nothing and harms nobody",
      ["relay", "ttl"],
      async (s) => {
        const b = await s.client();
        const [ended, taken] = [s.resource("ended"), s.resource("taken")];
        for (const resource of [ended, taken]) {
          const { prepared, deliver } = await overdue(
            s,
            async (client) => (await client.take(resource)).claim,
            (client, claim, call) => client.renew(claim, s.ttl(60_000), call),
          );
          expectKind(await b.release(prepared), "released", "the release that overtook it");
          const live = resource === taken ? await b.take(resource) : null;
          await deliver();
          await b.holdersAre(resource, ...(live === null ? [] : [live.token]));
        }
      },
    ),

    law(
      "L21.7",
      "a heartbeat that arrives after its waiter left does not enqueue it again",
      ["relay", "queue", "ttl"],
      async (s) => {
        const b = await s.client();
        const resource = s.resource();
        const held = await b.take(resource);
        const { prepared, deliver } = await overdue(
          s,
          (client) => client.wait(resource),
          (client, claim, call) => client.heartbeat(claim, call),
        );
        await b.release(prepared, TOMBSTONE_MS);
        await b.releaseHeld(held.claim);
        await deliver();
        await s.untilEmpty(b, resource);
      },
    ),

    law(
      "L21.8",
      "a withdrawal that arrives late does not end a grant that is in use",
      ["relay", "queue", "ttl"],
      async (s) => {
        const [b, c] = await s.clients(2);
        const resource = s.resource();
        const held = await b!.take(resource);
        const { prepared, deliver } = await overdue(
          s,
          (client) => client.wait(resource),
          (client, claim, call) => client.withdraw(claim, call),
        );
        await b!.releaseHeld(held.claim);
        const { token } = await b!.untilGranted(prepared);
        await deliver();
        await b!.holdersAre(resource, token);
        await c!.refused(resource);
      },
    ),

    law("L21.9", "a revocation that arrives late hits no successor", ["relay"], async (s) => {
      const b = await s.client();
      const resource = s.resource();
      const first = await b.take(resource);
      const { deliver } = await overdue(
        s,
        async () => null,
        (client, _, call) =>
          client.engine.revoke({ resource, token: first.token, force: true }, call),
      );
      await b.releaseHeld(first.claim);
      const live = await b.take(resource);
      await deliver();
      expectKind(await b.renew(live.claim), "renewed", "the successor");
      await b.holdersAre(resource, live.token);
    }),

    ...repeatedCallLaws,
  ],
};
