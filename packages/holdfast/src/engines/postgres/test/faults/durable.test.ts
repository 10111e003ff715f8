// What is told is on the disk first, whatever the sessions of a pool prefer. A commit with
// synchronous_commit = off is answered before its log is written.
import assert from "node:assert/strict";
import { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { LogGate } from "@holdfast/servers";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { claimInTransaction, init, type PostgresHold } from "../../index.js";
import { scenes } from "../support/test-server.fixture.js";

const HOLDS: readonly PostgresHold[] = ["rows", "advisory", "shedlock"];
const HASTY = { options: "-c synchronous_commit=off" };
// Long enough for an answer that does not wait for the disk.
const SOON_MS = 400;

const gate = new LogGate("pg_wal");
after(() => gate[Symbol.dispose]());

scenes({ durable: true, env: gate.env }, (play) => {
  play(
    "a session without synchronous commits does not wait for the log, to begin with",
    async (ground) => {
      await ground.admin.query("CREATE TABLE told (n int)");
      await using _ = closed();
      await ground.pool(HASTY).query("INSERT INTO told VALUES (1)");
    },
  );

  for (const hold of HOLDS) {
    play(`no grant is told before it is on the disk: hold "${hold}"`, async (ground) => {
      if (hold === "shedlock") await init(ground.admin, { shedlock: "public.shedlock" });
      const engine = ground.engine({ hold, pool: HASTY });
      const held = claim(`told-${hold}`);
      // The session that it takes is there before the log is held back.
      await engine.tryAcquire(claim(`before-${hold}`), now());
      await expectLate(() => engine.tryAcquire(held, now(20_000)));
      await expectLate(() => engine.renew([{ ...held, ttlMs: 9_000 }], now(20_000)));
    });
  }

  play("no waiter hears of its turn before it is on the disk", async (ground) => {
    const [ours, other] = [ground.engine({ pool: HASTY }), ground.engine({ pool: HASTY })];
    const [held, waits] = [claim("pushed"), claim("pushed")];
    await other.tryAcquire(held, now());
    const pushed = new Promise((resolve) => ours.queue!.onGrant(resolve));
    await ours.queue!.enqueue(waits, now());
    await expectLate(() =>
      Promise.race([other.release([{ ...held, tombstoneMs: 0 }], now(20_000)), pushed]),
    );
  });

  play("a claim in a transaction makes its commit wait for the disk", async (ground) => {
    const client = await ground.pool(HASTY).connect();
    await client.query("BEGIN");
    assert.notEqual(await claimInTransaction(client, "in-transaction"), null);
    await expectLate(() => client.query("COMMIT"));
    client.release();
  });
});

/** Until it is disposed of. */
function closed(): AsyncDisposable {
  gate.close();
  return { [Symbol.asyncDispose]: async () => gate.open() };
}

/** Answered, and not before the log may be written. */
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
    assert.equal(answered, false, "it was told before it was on the disk");
  }
  await answer;
}
