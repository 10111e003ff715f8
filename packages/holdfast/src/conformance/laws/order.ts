import assert from "node:assert";
import { assertRising, expectKind } from "../client.js";
import type { LawGroup } from "../harness.js";
import { within } from "../patience.js";
import { law } from "../stage.js";

export const order: LawGroup = {
  id: "L13",
  name: "queue order",
  text:
    "Waiters of all modes stand in one line, first come, first served, and token order is grant " +
    "order. Whoever leaves the queue lets in those it kept out.",
  laws: [
    law("L13.1", "waiters are granted in the order in which they came", ["queue"], async (s) => {
      const clients = await s.clients(3);
      const resource = s.resource();
      const held = await clients[0]!.take(resource);
      const line = [];
      for (let i = 0; i < 6; i++) {
        const client = clients[(i * 2) % 3]!;
        line.push({ client, claim: await client.wait(resource, { label: `number ${i}` }) });
      }
      const { waiters } = await clients[1]!.inspect(resource);
      assert.deepEqual(
        waiters.map(({ label, position }) => [label, position]),
        line.map((_, i) => [`number ${i}`, i]),
      );
      await clients[0]!.giveBack(held.claim);
      const tokens = [held.token];
      for (const [i, { client, claim }] of line.entries()) {
        // Everybody behind asks first, from the end of the queue or towards it: asking moves nobody.
        const behind = line.slice(i + 1);
        for (const later of i % 2 ? behind.reverse() : behind) {
          await later.client.stillWaits(later.claim, "a waiter before its turn");
        }
        tokens.push((await client.turn(claim)).token);
        await client.giveBack(claim);
      }
      assertRising(tokens);
    }),

    law("L13.2", "positions count those ahead, and move up", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const line = [];
      for (let i = 0; i < 3; i++) {
        const claim = b!.claim(resource);
        const queued = expectKind(await b!.enqueue(claim), "queued", "a waiter");
        assert.equal(queued.position, i);
        assert(queued.nextHeartbeatMs > 0, "a heartbeat that is due at once is due for ever");
        line.push(claim);
      }
      await a!.giveBack(held.claim);
      await b!.turn(line[0]!);
      for (const [i, claim] of line.slice(1).entries()) {
        assert.equal(expectKind(await b!.beat(claim), "queued", "a waiter").position, i);
      }
    }),

    law("L13.3", "waiters of both modes stand in one line", ["queue", "shared"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const line = [];
      for (const mode of ["shared", "shared", "exclusive", "shared", "exclusive"] as const) {
        line.push(await b!.wait(resource, { mode }));
      }
      const [r1, r2, w1, r3, w2] = line;
      await a!.giveBack(held.claim);
      const tokens = [held.token, (await b!.turn(r1!)).token, (await b!.turn(r2!)).token];
      for (const claim of [w1!, r3!, w2!]) await b!.stillWaits(claim, "one behind the readers");
      await b!.giveBack(r2!);
      await b!.giveBack(r1!);
      for (const [now, ...later] of [[w1!, r3!, w2!], [r3!, w2!], [w2!]] as const) {
        tokens.push((await b!.turn(now)).token);
        for (const claim of later) await b!.stillWaits(claim, "one behind");
        await b!.giveBack(now);
      }
      assertRising(tokens);
    }),

    law(
      "L13.4",
      "the head's withdrawal lets in whom it kept out",
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
          await c!.turn(first);
          await c!.turn(second);
          expectKind(await b!.beat(writer), "unknown", "the heartbeat of one that left");
        }
      },
    ),

    law("L13.5", "a withdrawal from the middle keeps the others in order", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const line = [];
      for (let i = 0; i < 4; i++) line.push(await b!.wait(resource));
      const [first, second, third, last] = line;
      expectKind(await b!.withdraw(second!), "withdrawn", "the second in the queue");
      expectKind(await b!.withdraw(second!), "withdrawn", "its repetition");
      await a!.giveBack(held.claim);
      for (const claim of [first!, third!, last!]) {
        await b!.turn(claim);
        await b!.giveBack(claim);
      }
      await s.untilEmpty(a!, resource);
    }),

    law("L13.6", "a withdrawal after the grant finds the grant", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const waiter = await b!.wait(resource);
      await a!.giveBack(held.claim);
      const granted = expectKind(await b!.withdraw(waiter), "granted", "one that came too late");
      await a!.holdersAre(resource, granted.token);
      expectKind(await b!.renew(waiter), "renewed", "the grant that was found");
      await b!.giveBack(waiter);
    }),

    law("L13.7", "a withdrawal or heartbeat of nobody changes nothing", ["queue"], async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const held = await a!.take(resource);
      const waiter = await b!.wait(resource);
      const nobody = b!.claim(resource);
      expectKind(await b!.withdraw(nobody), "withdrawn", "the withdrawal of nobody");
      expectKind(await b!.beat(nobody), "unknown", "the heartbeat of nobody");
      await b!.stillWaits(waiter, "a waiter beside nobody");
      await a!.holdersAre(resource, held.token);
      assert.equal((await a!.inspect(resource)).waiters.length, 1);
    }),

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
        await a.giveBack(heldX!.claim);
        await a.turn(atX);
        const kinds = async (...claims: (typeof atX)[]) =>
          (await a.beats(claims)).map((answer) => answer.kind);
        assert.deepEqual(await kinds(atY, nobody, atX), ["queued", "unknown", "granted"]);
        assert.deepEqual(await kinds(atX, nobody, atY), ["granted", "unknown", "queued"]);
        assert.deepEqual(await kinds(), []);
      },
    ),

    law("L13.9", "lines of different resources do not touch each other", ["queue"], async (s) => {
      const a = await s.client();
      const [x, y] = [s.resource("x"), s.resource("y")];
      const [heldX, heldY] = [await a.take(x), await a.take(y)];
      const [atX, atY] = [await a.wait(x), await a.wait(y)];
      await a.giveBack(heldX.claim);
      await a.turn(atX);
      await a.stillWaits(atY, "a waiter for another resource");
      await a.giveBack(heldY.claim);
      await a.turn(atY);
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
