// Readers and a writer, and a semaphore. Both are the same primitive: an acquire that is exclusive, or
// shared with a limit.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
await using locks = await connect(`sqlite:${folder.path}/locks.db`);

// #region readers
const catalogue = locks.rwLock("catalogue");
const readers = [await catalogue.read(), await catalogue.read()]; // any number at once
const writing = catalogue.write({ waitMs: 10_000 }); // alone: waits for both
// #endregion

console.log(`${readers.length} readers at once`);
const asked = await Promise.race([writing, sleep(50, "waits")]);
console.log(`the writer ${asked === "waits" ? "waits for them" : "did not wait"}`);
for (const reader of readers) await reader.release();
await (await writing).release();
console.log("the writer had its turn");

// #region semaphore
const gpu = locks.semaphore("gpu", { permits: 2 });
const train = (job: number) => gpu.run((lease) => work(job, lease.signal)); // two at once
// #endregion

let busy = 0;
let most = 0;
async function work(job: number, signal: AbortSignal): Promise<number> {
  most = Math.max(most, ++busy);
  await sleep(10, undefined, { signal });
  busy--;
  return job;
}
const done = await Promise.all([1, 2, 3, 4, 5, 6].map(train));
console.log(`${done.length} jobs, at most ${most} on the gpu at once`);
console.log(`the next one ${(await gpu.tryAcquire()) === null ? "must wait" : "gets in at once"}`);
