// A job that every host starts at the same time and that only one should do.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { connect } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
await using locks = await connect(`sqlite:${folder.path}/locks.db`);

// #region once
const nightly = { atMostMs: 10 * 60_000, atLeastMs: 30_000 };
const result = await locks.once("nightly", nightly, (lease) => tidyUp(lease.signal));
console.log(result.ran ? `done: ${result.value} files` : "somebody else does it");
// #endregion

const again = await locks.once("nightly", nightly, (lease) => tidyUp(lease.signal));
console.log(again.ran ? `done: ${again.value} files` : "somebody else does it");

process.chdir(folder.path);
await writeFile("backup.sh", "#!/bin/sh\necho backed up\n", { mode: 0o755 });

for (const _host of ["a", "b"]) {
  // #region cron
  // atLeastMs: longer than the hosts' clocks differ. atMostMs: a host that dies keeps the others out so long.
  const turn = { atMostMs: 3_600_000, atLeastMs: 60_000 };
  await locks.once("backup", turn, async ({ signal }) => {
    const { stdout } = await promisify(execFile)("./backup.sh", { signal });
    process.stdout.write(stdout);
  });
  // #endregion
}

async function tidyUp(_signal: AbortSignal): Promise<number> {
  return 3;
}
