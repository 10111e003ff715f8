// Runs a function under a lock, or skips it when somebody else holds the lock.
import { connect } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
await using locks = await connect(`sqlite:${folder.path}/locks.db`);

// #region run
const report = await locks.run("report:2024-06", async (lease) => {
  const rows = await collect(lease.signal); // the signal aborts when the lease is lost
  lease.assertHeld(); // throws LeaseLostError if it is lost: publish() does not start then
  return publish(rows);
});
// #endregion
console.log(report);

// #region try
const maybe = await locks.tryAcquire("report:2024-06"); // a lease, or null; it never waits
if (maybe === null) console.log("somebody else holds it");
else await maybe.release();
// #endregion

await locks.run("report:2024-06", async () => {
  const second = await locks.tryAcquire("report:2024-06");
  console.log(`while it is held, tryAcquire gives ${second}`);
});

async function collect(signal: AbortSignal): Promise<number[]> {
  signal.throwIfAborted();
  return [20, 22];
}

async function publish(rows: readonly number[]): Promise<string> {
  return `published ${rows.reduce((a, b) => a + b, 0)}`;
}
