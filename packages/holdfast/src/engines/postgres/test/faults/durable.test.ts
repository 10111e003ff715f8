// An answer is on the disk before it is sent, whatever the sessions of a pool prefer. A commit with
// synchronous_commit = off is answered before its log is written.
import assert from "node:assert/strict";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LogGate } from "@holdfast/servers";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { claimInTransaction, init, type PostgresHold } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

const HOLDS: readonly PostgresHold[] = ["rows", "advisory", "shedlock"];
const HASTY = { options: "-c synchronous_commit=off" };
// Long enough for an answer that does not wait for the disk.
const SOON_MS = 400;

const gate = new LogGate("pg_wal");
after(() => gate[Symbol.dispose]());

describeWithPostgres({ durable: true, env: gate.env }, (it) => {
  it("a session with synchronous_commit = off does not wait for the log", async (server) => {
    await server.admin.query("CREATE TABLE told (n int)");
    await using _ = closed();
    await server.pool(HASTY).query("INSERT INTO told VALUES (1)");
  });

  for (const hold of HOLDS) {
    it(`no grant is answered before it is on the disk: hold "${hold}"`, async (server) => {
      if (hold === "shedlock") await init(server.admin, { shedlock: "public.shedlock" });
      const engine = server.engine({ hold, pool: HASTY });
      const held = claim(`told-${hold}`);
      // Opens the session before the log is held back.
      await engine.tryAcquire(claim(`before-${hold}`), now());
      await expectLate(() => engine.tryAcquire(held, now(20_000)));
      await expectLate(() => engine.renew([{ ...held, ttlMs: 9_000 }], now(20_000)));
    });
  }

  it("no waiter learns of its turn before the grant is on the disk", async (server) => {
    const [ours, other] = [server.engine({ pool: HASTY }), server.engine({ pool: HASTY })];
    const [held, waits] = [claim("pushed"), claim("pushed")];
    await other.tryAcquire(held, now());
    const pushed = new Promise((resolve) => ours.queue!.onGrant(resolve));
    await ours.queue!.enqueue(waits, now());
    await expectLate(() =>
      Promise.race([other.release([{ ...held, tombstoneMs: 0 }], now(20_000)), pushed]),
    );
  });

  it("a claim in a transaction makes its commit wait for the disk", async (server) => {
    const client = await server.pool(HASTY).connect();
    await client.query("BEGIN");
    assert.notEqual(await claimInTransaction(client, "in-transaction"), null);
    await expectLate(() => client.query("COMMIT"));
    client.release();
  });
});

/** Keeps the gate closed until it is disposed of. */
function closed(): AsyncDisposable {
  gate.close();
  return { [Symbol.asyncDispose]: async () => gate.open() };
}

/** Asserts that the answer arrives, but not before the log may be written. */
async function expectLate(ask: () => Promise<unknown>): Promise<void> {
  let answered = false;
  const asked = async () => {
    const answer = await ask();
    answered = true;
    return answer;
  };
  let answer: Promise<unknown>;
  {
    await using _ = closed();
    answer = asked();
    answer.catch(() => {});
    await sleep(SOON_MS);
    assert.equal(answered, false, "the answer came before it was on the disk");
  }
  await answer;
}
