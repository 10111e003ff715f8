import assert from "node:assert";
import { expectKind } from "../client.js";
import { law } from "../law.js";
import { elapse, outcome } from "../timing.js";

/** The same call several times at once, as a client that resends may send it. */
export const repeatedCallLaws = [
  law(
    "L21.10",
    "an acquire repeated while its first request is delayed is one grant, and stays",
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
      await b!.releaseHeld(claim);
      await s.untilEmpty(c!, resource);
    },
  ),

  law(
    "L21.11",
    "a claim sent several times at once is one grant, with equal answers",
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
        await a!.releaseHeld(claim);
        await s.untilEmpty(b!, claim.resource);
      }
    },
  ),

  law("L21.12", "overlapping renewals are all answered with renewed", [], async (s) => {
    const a = await s.client();
    const { claim } = await a.take(s.resource());
    for (let i = 0; i < 5; i++) {
      const answers = await Promise.all([1, 2, 3].map(() => a.renew(claim)));
      for (const answer of answers) expectKind(answer, "renewed", "one of three at once");
    }
  }),

  law("L21.13", "overlapping releases end one grant, and not the next", [], async (s) => {
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
    "an enqueue repeated while its first request is under way has one place",
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
      await a!.releaseHeld(held.claim);
      await b!.untilGranted(claim);
      await b!.releaseHeld(claim);
      await s.untilEmpty(a!, resource);
    },
  ),
];
