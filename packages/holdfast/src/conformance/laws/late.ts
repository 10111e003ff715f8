import assert from "node:assert";
import type { Call } from "../../engine.js";
import { assertRising, type Client, expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { elapse, outcome } from "../patience.js";
import { law, type Stage } from "../stage.js";
import { GRAVE_MS } from "./tombstones.js";

/** How long core waits for an answer here; a request that is kept back is given up after it. */
const DEADLINE_MS = 150;
const GAVE_UP_MS = 1_000;
/** For what was delivered to be carried out. */
const ARRIVAL_MS = 150;

/** Sends a request that is kept back on its way until after its deadline; gives the way to deliver it. */
async function overdue<T>(
  s: Stage,
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
    "arrives, it ends nobody else's grant, revives nothing, takes back nothing that was told, and " +
    "leaves nothing behind that core does not know of.",
  laws: [
    law(
      "L21.1",
      "an acquire that arrives after it was given up is refused",
      ["relay"],
      async (s) => {
        const b = await s.client();
        const resource = s.resource();
        const { prepared, deliver } = await overdue(
          s,
          async (client) => client.claim(resource),
          (client, claim, call) => client.try(claim, call),
        );
        await b.release(prepared, GRAVE_MS);
        await deliver();
        await s.untilEmpty(b, resource);
        await b.take(resource);
      },
    ),

    law(
      "L21.2",
      "an enqueue that arrives after it was given up stands nowhere",
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
        await b.release(prepared, GRAVE_MS);
        await deliver();
        // Some engines make the waiter and take it away again. Who stays is silent, and would stay for 10 s.
        for (let tries = 0; (await b.inspect(resource)).waiters.length > 0; tries++) {
          assert(tries < 30, "somebody who was given up stands in the queue");
          await elapse(100);
        }
        await b.giveBack(held.claim);
        await s.untilEmpty(b, resource);
      },
    ),

    law(
      "L21.3",
      "an acquire that arrives late gets no token that was given before",
      ["relay"],
      async (s) => {
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
          if (i < 2) await b.giveBack(claim);
        }
        await deliver();
        await b.holdersAre(resource, tokens.at(-1)!);
        await b.release(prepared, GRAVE_MS);
        assertRising(tokens);
      },
    ),

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
        // The record is made anew as often as it takes for anything in it to repeat.
        for (let i = 0; i < 2; i++) await b.giveBack((await b.take(resource)).claim);
        const live = await b.take(resource);
        await deliver();
        await b.holdersAre(resource, live.token);
        expectKind(await b.renew(live.claim), "renewed", "the successor");
        await (await s.client()).refused(resource);
      },
    ),

    law(
      "L21.5",
      "a renewal that arrives late takes back nothing that a later one gave",
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
      "a renewal that arrives after its grant ended revives nothing and hurts nobody",
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
      "a heartbeat that arrives after its waiter left brings nobody back",
      ["relay", "queue", "ttl"],
      async (s) => {
        const b = await s.client();
        const resource = s.resource();
        const held = await b.take(resource);
        const { prepared, deliver } = await overdue(
          s,
          (client) => client.wait(resource),
          (client, claim, call) => client.beat(claim, call),
        );
        await b.release(prepared, GRAVE_MS);
        await b.giveBack(held.claim);
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
        await b!.giveBack(held.claim);
        const { token } = await b!.turn(prepared);
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
      await b.giveBack(first.claim);
      const live = await b.take(resource);
      await deliver();
      expectKind(await b.renew(live.claim), "renewed", "the successor");
      await b.holdersAre(resource, live.token);
    }),

    law(
      "L21.10",
      "an acquire repeated while its first is kept back is one grant, and stays",
      ["relay", "ttl"],
      async (s) => {
        const [b, c] = await s.clients(2);
        const resource = s.resource();
        const { client, hold, deliver } = await s.relayed();
        const claim = client.claim(resource);
        await hold();
        const asked = outcome(client.try(claim), 5_000);
        await elapse(50);
        const granted = expectKind(await b!.try(claim), "granted", "the repeat, on its own way");
        await deliver();
        const first = await asked;
        if (first.is === "value" && first.value.kind === "granted") {
          assert.equal(first.value.token, granted.token, "both are told of one grant");
        }
        await b!.holdersAre(resource, granted.token);
        await c!.refused(resource);
        expectKind(await b!.renew(claim), "renewed", "the grant");
        await b!.giveBack(claim);
        await s.untilEmpty(c!, resource);
      },
    ),

    law(
      "L21.11",
      "a claim asked several times at once is one grant, believed by all alike",
      [],
      async (s) => {
        const [a, b] = await s.clients(2);
        for (const verb of s.harness.queue === false
          ? (["try"] as const)
          : (["try", "enqueue"] as const)) {
          const claim = a!.claim(s.resource(verb));
          const answers = await Promise.all([1, 2, 3].map(() => a![verb](claim)));
          const tokens = answers.map(
            (answer) => expectKind(answer, "granted", "one claim, asked three times").token,
          );
          assert.equal(new Set(tokens).size, 1, "one grant has one token");
          await b!.holdersAre(claim.resource, tokens[0]!);
          await a!.giveBack(claim);
          await s.untilEmpty(b!, claim.resource);
        }
      },
    ),

    law("L21.12", "renewals that overlap all say that the grant lives", [], async (s) => {
      const a = await s.client();
      const { claim } = await a.take(s.resource());
      for (let i = 0; i < 5; i++) {
        const answers = await Promise.all([1, 2, 3].map(() => a.renew(claim)));
        for (const answer of answers) expectKind(answer, "renewed", "one of three at once");
      }
    }),

    law("L21.13", "releases that overlap end one grant, and not the next", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const { claim } = await a!.take(resource);
      const answers = await Promise.all([1, 2, 3].map(() => a!.release(claim)));
      assert(
        answers.some(({ kind }) => kind === "released"),
        "one of them ended it",
      );
      const live = await b!.take(resource);
      await a!.release(claim);
      await b!.holdersAre(resource, live.token);
    }),

    law(
      "L21.14",
      "an enqueue repeated while its first is under way has one place",
      ["queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const held = await a!.take(resource);
        const claim = b!.claim(resource);
        const answers = await Promise.all([1, 2, 3].map(() => b!.enqueue(claim)));
        for (const answer of answers) {
          assert.equal(expectKind(answer, "queued", "a waiter").position, 0);
        }
        assert.equal((await a!.inspect(resource)).waiters.length, 1);
        await a!.giveBack(held.claim);
        await b!.turn(claim);
        await b!.giveBack(claim);
        await s.untilEmpty(a!, resource);
      },
    ),
  ],
};
