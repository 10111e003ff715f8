// Your own tests need no server: the memory engine keeps the whole contract in one process, and a
// manual clock makes a pause of an hour take no time.
import assert from "node:assert/strict";
import { connect, LeaseLostError, type Locks } from "holdfast";
import { MemoryStore, memoryEngine } from "holdfast/memory";
import { ManualClock } from "holdfast/testing";

/** The code under test: it must not send when it lost its lease while it was writing the letter. */
async function sendReminder(locks: Locks, write: () => void, sent: string[]): Promise<void> {
  await using lease = await locks.acquire("reminders", { ttlMs: 10_000 });
  write();
  lease.assertHeld();
  sent.push("reminder");
}

// #region testing
const clock = new ManualClock();
const store = new MemoryStore(); // two connections to one store contend, as two processes would
const ours = await connect(memoryEngine({ store }), { clock });
const theirs = await connect(memoryEngine({ store }), { clock });

const sent: string[] = [];
await sendReminder(ours, () => {}, sent);
assert.deepEqual(sent, ["reminder"]);

// The process stands still for a minute in the middle of it: nothing is sent a second time.
await assert.rejects(
  sendReminder(ours, () => clock.pause(60_000), sent),
  LeaseLostError,
);
assert.deepEqual(sent, ["reminder"]);
assert.ok(await theirs.tryAcquire("reminders"), "others can go on");
// #endregion

await ours.close();
await theirs.close();
console.log(`sent ${sent.length} reminder, and none after the pause`);
