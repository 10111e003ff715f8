import assert from "node:assert";
import { assertRising, expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { within } from "../timing.js";

export const order: LawGroup = {
  id: "L13",
  name: "queue order",
  text:
    "Waiters of all modes wait in one queue, first come, first served, and token order is grant " +
    "order. A waiter that leaves the queue lets in those that it kept out.",
  laws: [
    law("L13.1", "waiters are granted in the order in which they came", ["queue"], async (s) => {
      const clients = await s.clients(3);
      const resource = s.resource();
      const held = await clients[0]!.take(resource);
      const queue = [];
      for (let i = 0; i < 6; i++) {
        const client = clients[(i * 2) % 3]!;
        queue.push({ client, claim: await client.wait(resource, { label: `number ${i}` }) });
      }
      const { waiters } = await clients[1]!.inspect(resource);
      assert.deepEqual(
        waiters.map(({ label, position }) => [label, position]),
        queue.map((_, i) => [`number ${i}`, i]),
      );
      await clients[0]!.releaseHeld(held.claim);
      const tokens = [held.token];
      for (const [i, { client, claim }] of queue.entries()) {
        // All waiters behind ask first, in both directions: asking moves nobody.
        const behind = queue.slice(i + 1);
        for (const later of i % 2 ? behind.reverse() : behind) {
          await later.client.stillWaits(later.claim, "a waiter before its turn");
        }
        tokens.push((await client.untilGranted(claim)).token);
        await client.releaseHeld(claim);
      }
      assertRising(tokens);
    }),

    law("L13.2", "a position counts the waiters ahead, and moves up", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const queue = [];
      for (let i = 0; i < 3; i++) {
        const claim = b!.claim(resource);
        const queued = expectKind(await b!.enqueue(claim), "queued", "a waiter");
        assert.equal(queued.position, i);
        assert(queued.nextHeartbeatMs > 0, "a heartbeat that is due at once is due for ever");
        queue.push(claim);
      }
      await a!.releaseHeld(held.claim);
      await b!.untilGranted(queue[0]!);
      for (const [i, claim] of queue.slice(1).entries()) {
        assert.equal(expectKind(await b!.heartbeat(claim), "queued", "a waiter").position, i);
      }
    }),

    law("L13.3", "waiters of both modes wait in one queue", ["queue", "shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const queue = [];
      for (const mode of ["shared", "shared", "exclusive", "shared", "exclusive"] as const) {
        queue.push(await b!.wait(resource, { mode }));
      }
      const [r1, r2, w1, r3, w2] = queue;
      await a!.releaseHeld(held.claim);
      const tokens = [
        held.token,
        (await b!.untilGranted(r1!)).token,
        (await b!.untilGranted(r2!)).token,
      ];
      for (const claim of [w1!, r3!, w2!]) await b!.stillWaits(claim, "one behind the readers");
      await b!.releaseHeld(r2!);
      await b!.releaseHeld(r1!);
      for (const [now, ...later] of [[w1!, r3!, w2!], [r3!, w2!], [w2!]] as const) {
        tokens.push((await b!.untilGranted(now)).token);
        for (const claim of later) await b!.stillWaits(claim, "one behind");
        await b!.releaseHeld(now);
      }
      assertRising(tokens);
    }),

    law(
      "L13.4",
      "the head's withdrawal lets in the waiters that it kept out",
      ["queue", "shared"],
      async (s) => {
        const [a, b, c] = await s.clients(3);
        for (const leave of ["withdraw", "release"] as const) {
          const resource = s.resource(leave);
          await a!.take(resource, { mode: "shared" });
          const writer = await b!.wait(resource);
          const first = await c!.wait(resource, { mode: "shared" });
          const second = await c!.wait(resource, { mode: "shared" });
          if (leave === "withdraw") {
            expectKind(await b!.withdraw(writer), "withdrawn", "a waiter that leaves");
          } else {
            expectKind(await b!.release(writer), "released", "a waiter that leaves");
          }
          await c!.untilGranted(first);
          await c!.untilGranted(second);
          expectKind(await b!.heartbeat(writer), "unknown", "the heartbeat of one that left");
        }
      },
    ),

    law("L13.5", "a withdrawal from the middle keeps the others in order", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const queue = [];
      for (let i = 0; i < 4; i++) queue.push(await b!.wait(resource));
      const [first, second, third, last] = queue;
      expectKind(await b!.withdraw(second!), "withdrawn", "the second in the queue");
      expectKind(await b!.withdraw(second!), "withdrawn", "its repetition");
      await a!.releaseHeld(held.claim);
      for (const claim of [first!, third!, last!]) {
        await b!.untilGranted(claim);
        await b!.releaseHeld(claim);
      }
      await s.untilEmpty(a!, resource);
    }),

    law(
      "L13.6",
      "a withdrawal after the grant is answered with the grant",
      ["queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const held = await a!.take(resource);
        const waiter = await b!.wait(resource);
        await a!.releaseHeld(held.claim);
        const granted = expectKind(await b!.withdraw(waiter), "granted", "one that came too late");
        await a!.holdersAre(resource, granted.token);
        expectKind(await b!.renew(waiter), "renewed", "the grant that was found");
        await b!.releaseHeld(waiter);
      },
    ),

    law(
      "L13.7",
      "a withdrawal or heartbeat of an unknown waiter changes nothing",
      ["queue"],
      async (s) => {
        const [a, b] = await s.clients(2);
        const resource = s.resource();
        const held = await a!.take(resource);
        const waiter = await b!.wait(resource);
        const nobody = b!.claim(resource);
        expectKind(await b!.withdraw(nobody), "withdrawn", "the withdrawal of nobody");
        expectKind(await b!.heartbeat(nobody), "unknown", "the heartbeat of nobody");
        await b!.stillWaits(waiter, "a waiter beside nobody");
        await a!.holdersAre(resource, held.token);
        assert.equal((await a!.inspect(resource)).waiters.length, 1);
      },
    ),

    law(
      "L13.8",
      "heartbeats are answered waiter by waiter, in the order asked",
      ["queue"],
      async (s) => {
        const a = await s.client();
        const [x, y] = [s.resource("x"), s.resource("y")];
        const [heldX] = [await a.take(x), await a.take(y)];
        const [atX, atY] = [await a.wait(x), await a.wait(y)];
        const nobody = a.claim(x);
        await a.releaseHeld(heldX!.claim);
        await a.untilGranted(atX);
        const kinds = async (...claims: (typeof atX)[]) =>
          (await a.heartbeats(claims)).map((answer) => answer.kind);
        assert.deepEqual(await kinds(atY, nobody, atX), ["queued", "unknown", "granted"]);
        assert.deepEqual(await kinds(atX, nobody, atY), ["granted", "unknown", "queued"]);
        assert.deepEqual(await kinds(), []);
      },
    ),

    law("L13.9", "queues of different resources do not affect each other", ["queue"], async (s) => {
      const a = await s.client();
      const [x, y] = [s.resource("x"), s.resource("y")];
      const [heldX, heldY] = [await a.take(x), await a.take(y)];
      const [atX, atY] = [await a.wait(x), await a.wait(y)];
      await a.releaseHeld(heldX.claim);
      await a.untilGranted(atX);
      await a.stillWaits(atY, "a waiter for another resource");
      await a.releaseHeld(heldY.claim);
      await a.untilGranted(atY);
    }),

    law(
      "L13.10",
      "through the API, waiters are served in the order in which they came",
      [],
      async (s) => {
        const all = [await s.locks(), await s.locks(), await s.locks()];
        const resource = s.resource();
        const lease = await all[0]!.acquire(resource, { fair: "strict" });
        const served: number[] = [];
        const tokens = [lease.token];
        const works: Promise<void>[] = [];
        for (let i = 0; i < 6; i++) {
          const options = { fair: "strict", waitMs: 40_000 } as const;
          works.push(
            all[i % 3]!.run(resource, options, (mine) => {
              served.push(i);
              tokens.push(mine.token);
            }),
          );
          await s.untilWaiters(all[0]!, resource, i + 1);
        }
        await lease.release();
        await within(40_000, Promise.all(works), "all waiters");
        assert.deepEqual(served, [0, 1, 2, 3, 4, 5]);
        assertRising(tokens);
      },
    ),
  ],
};
