// A lease can be lost: its holder was paused for too long, the backend went away, an operator revoked
// it. Long work listens to lease.signal, which comes before anybody else can be granted the lock.
import { setTimeout as sleep } from "node:timers/promises";
import { connect, LeaseLostError } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
await using locks = await connect(`sqlite:${folder.path}/locks.db`);

async function migrate(): Promise<string> {
  // #region losing
  await using lease = await locks.acquire("migration", { ttlMs: 10_000, graceMs: 2_000 });
  for (let table = 1; table <= 1_000; table++) {
    try {
      await copyTable(table, lease.signal); // whatever takes a signal: fetch, timers, child processes
    } catch (error) {
      if (!(error instanceof LeaseLostError)) throw error;
      return `stopped at table ${table}: ${error.reason}, ${spare(error)} to tidy up`;
    }
  }
  return "done";
  // #endregion
}

const migration = migrate();
await sleep(100);
// An operator takes the lock away, from another process as a rule. The token says which grant is
// meant, so that a successor is never hit by mistake.
const { holders } = await locks.inspect("migration");
await locks.revoke("migration", { token: holders[0]!.token });
console.log(await migration);

async function copyTable(_table: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  // Timers reject with an AbortError of their own; the reason behind it is what says more.
  await sleep(20, undefined, { signal }).catch(() => signal.throwIfAborted());
}

function spare(error: LeaseLostError): string {
  return error.remainingMs > 2_000 ? "more than 2 s" : "little time";
}
