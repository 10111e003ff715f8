// What every host starts at the same time, and one should do.
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

async function tidyUp(_signal: AbortSignal): Promise<number> {
  return 3;
}
