// A lease can be lost: its holder was paused for too long, the backend went away, an operator revoked
// it. Long work listens to lease.signal, which comes before anybody else can be granted the lock.
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { connect, LeaseLostError } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
await using locks = await connect(`sqlite:${folder.path}/locks.db`);

type CopyTable = (table: number, signal: AbortSignal) => Promise<unknown>;

// When the signal aborts, each of them throws something of its own: an AbortError, or the reason.
const TOOLS: Readonly<Record<string, CopyTable>> = {
  "a timer": (_table, signal) => sleep(20, undefined, { signal }),
  "a child process": (_table, signal) =>
    promisify(execFile)(process.execPath, ["-e", "setTimeout(() => {}, 60_000)"], { signal }),
  "code of ours": async (_table, signal) => {
    await sleep(20);
    signal.throwIfAborted();
  },
};

async function migrate(copyTable: CopyTable): Promise<string> {
  // #region losing
  await using lease = await locks.acquire("migration", { ttlMs: 10_000, graceMs: 2_000 });
  for (let table = 1; table <= 1_000; table++) {
    try {
      await copyTable(table, lease.signal); // whatever takes a signal: fetch, timers, child processes
    } catch (error) {
      const loss: unknown = lease.signal.reason; // not the error: timers throw an AbortError instead
      if (!(loss instanceof LeaseLostError)) throw error;
      return `stopped at table ${table}: ${loss.reason}, ${spare(loss)} to tidy up`;
    }
  }
  return "done";
  // #endregion
}

for (const [tool, copyTable] of Object.entries(TOOLS)) {
  const migration = migrate(copyTable);
  await sleep(100);
  // An operator takes the lock away, from another process as a rule. The token says which grant is
  // meant, so that a successor is never hit by mistake.
  const { holders } = await locks.inspect("migration");
  await locks.revoke("migration", { token: holders[0]!.token });
  console.log(`${tool} ${await migration}`);
}

function spare(loss: LeaseLostError): string {
  return loss.remainingMs > 2_000 ? "more than 2 s" : "little time";
}
