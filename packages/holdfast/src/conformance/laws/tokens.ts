import assert from "node:assert";
import { assertRising, type Client, expectKind, type Held } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { elapse, outcome } from "../timing.js";

const MAX_TOKEN = 2n ** 63n - 1n;

/**
 * After a lost connection or a restart a client may need a few tries. All tries are one claim: an
 * early one may be granted after its answer was given up.
 */
async function takeSoon(client: Client, resource: string): Promise<Held> {
  const claim = client.claim(resource);
  for (let tries = 0; tries < 100; tries++) {
    const answer = await outcome(client.try(claim), 3_000);
    if (answer.is === "value" && answer.value.kind === "granted") {
      return { claim, granted: answer.value, token: answer.value.token };
    }
    await elapse(50);
  }
  return client.take(resource);
}

export const tokens: LawGroup = {
  id: "L6",
  name: "tokens rise",
  text:
    "Every grant's token is greater than every token of every earlier grant of the resource, " +
    "whatever ended the earlier one, across clients, reconnects and, as far as the trait says, " +
    "restarts. A range belongs to its grant alone.",
  laws: [
    law("L6.1", "tokens rise over releases, across clients", [], async (s) => {
      const clients = await s.clients(3);
      const resource = s.resource();
      const seen: bigint[] = [];
      for (let i = 0; i < 12; i++) {
        const client = clients[i % 3]!;
        const held = await client.take(resource);
        seen.push(held.token);
        await client.releaseHeld(held.claim);
      }
      assertRising(seen);
      assert(seen[0]! > 0n && seen.at(-1)! <= MAX_TOKEN, "a token is positive and has 63 bits");
    }),

    law("L6.2", "tokens rise over expiries", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const seen: bigint[] = [];
      for (const client of [a!, b!]) {
        seen.push((await client.take(resource, { ttlMs: s.lifeMs })).token);
        await s.expire(resource, s.lifeMs, client);
      }
      seen.push((await a!.take(resource)).token);
      assertRising(seen);
    }),

    law("L6.3", "tokens rise over revocations, forced ones too", [], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource);
      await b!.revoke(resource, first.token);
      await a!.releaseHeld(first.claim);
      const second = await a!.take(resource);
      await b!.revoke(resource, second.token, true);
      const third = await b!.take(resource);
      assertRising([first.token, second.token, third.token]);
    }),

    law(
      "L6.4",
      "tokens of shared grants rise, and rise past exclusive ones",
      ["shared"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const seen: bigint[] = [];
        for (let round = 0; round < 3; round++) {
          const readers = [
            await a!.take(resource, { mode: "shared" }),
            await b!.take(resource, { mode: "shared" }),
            await a!.take(resource, { mode: "shared" }),
          ];
          // Released out of order: the last grant, not the last release, sets the highest token.
          for (const i of [2, 0, 1]) await a!.releaseHeld(readers[i]!.claim);
          const writer = await b!.take(resource);
          await b!.releaseHeld(writer.claim);
          seen.push(...readers.map((reader) => reader.token), writer.token);
        }
        assertRising(seen);
      },
    ),

    law("L6.5", "a range of tokens is reserved for its grant alone", ["range"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const asked = Math.min(16, s.traits.tokenRange);
      let last = 0n;
      for (const count of [asked, 1, asked, 2]) {
        const { claim, granted } = await a!.take(resource, { tokens: count });
        const { token } = granted;
        assert(granted.tokens >= 1 && granted.tokens <= count, "no more than was asked for");
        assert.equal(granted.tokens, count, "a range within the trait is reserved whole");
        assert(token > last, `token ${token} lies in an earlier range, which ends at ${last}`);
        last = token + BigInt(granted.tokens - 1);
        await a!.releaseHeld(claim);
      }
      assert((await b!.take(resource)).token > last, "the next grant lies beyond the range");
    }),

    law(
      "L6.6",
      "ranges of simultaneous shared grants do not overlap",
      ["range", "shared"],
      async (s) => {
        const clients = await s.clients(2);
        const resource = s.resource();
        const count = Math.min(16, s.traits.tokenRange);
        let last = 0n;
        for (let i = 0; i < 6; i++) {
          const terms = { mode: "shared", tokens: count } as const;
          const { granted } = await clients[i % 2]!.take(resource, terms);
          assert(granted.token > last, "two grants share a token");
          last = granted.token + BigInt(granted.tokens - 1);
        }
      },
    ),

    law(
      "L6.7",
      "tokens given to waiters rise in the order of their grants",
      ["queue"],
      async (s) => {
        const clients = await s.clients(3);
        const resource = s.resource();
        const count = Math.min(4, s.traits.tokenRange);
        const first = await clients[0]!.take(resource, { tokens: count });
        const waiters = [];
        for (const client of clients) waiters.push(await client.wait(resource, { tokens: count }));
        await clients[0]!.releaseHeld(first.claim);
        let last = first.token + BigInt(first.granted.tokens - 1);
        for (const [i, waiter] of waiters.entries()) {
          const { granted } = await clients[i]!.untilGranted(waiter);
          assert(granted.token > last, `token ${granted.token} came after ${last}`);
          last = granted.token + BigInt(granted.tokens - 1);
          await clients[i]!.releaseHeld(waiter);
        }
      },
    ),

    law("L6.8", "tokens rise when every client is closed and a new one comes", [], async (s) => {
      const resource = s.resource();
      const seen: bigint[] = [];
      for (let i = 0; i < 4; i++) {
        const client = await s.client();
        const held = await client.take(resource);
        seen.push(held.token);
        await client.releaseHeld(held.claim);
        await client.engine.close();
      }
      assertRising(seen);
    }),

    law("L6.9", "tokens rise across a cut connection", ["sever"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource);
      await a!.releaseHeld(first.claim);
      const heal = await s.harness.sever!(a!.engine);
      const second = await b!.take(resource);
      await b!.releaseHeld(second.claim);
      await heal();
      const third = await takeSoon(a!, resource);
      assertRising([first.token, second.token, third.token]);
    }),

    law("L6.10", "tokens rise across a restart of the backend", ["restart"], async (s) => {
      const resource = s.resource();
      const seen: bigint[] = [];
      const count = Math.min(16, s.traits.tokenRange);
      for (let i = 0; i < 2; i++) {
        const before = await s.client();
        const held = await before.take(resource, { tokens: count });
        seen.push(held.token, held.token + BigInt(held.granted.tokens) - 1n);
        await before.releaseHeld(held.claim);
        await before.engine.close();
        await s.harness.restart!();
        const after = await s.client();
        const next = await takeSoon(after, resource);
        seen.push(next.token);
        await after.releaseHeld(next.claim);
        await after.engine.close();
      }
      const distinct = seen.filter((token, i) => token !== seen[i - 1]);
      assertRising(distinct);
    }),

    law(
      "L6.11",
      "a token is given once, no matter how many claim at the same instant",
      [],
      async (s) => {
        const clients = await s.clients(3);
        const resource = s.resource();
        const seen: bigint[] = [];
        for (let round = 0; round < 5; round++) {
          const claims = clients.map((client) => client.claim(resource));
          const answers = await Promise.all(clients.map((client, i) => client.try(claims[i]!)));
          const at = answers.findIndex((answer) => answer.kind === "granted");
          seen.push(expectKind(answers[at]!, "granted", "one of three").token);
          await clients[at]!.releaseHeld(claims[at]!);
        }
        assertRising(seen);
      },
    ),
  ],
};
