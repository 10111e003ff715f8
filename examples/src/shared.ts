// Readers and a writer, and a semaphore. Both are the same primitive: exclusive, or shared with a
// limit.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
await using locks = await connect(`sqlite:${folder.path}/locks.db`);

// #region readers
const read = () => locks.acquire("catalogue", { mode: "shared" }); // any number at once
const write = () => locks.acquire("catalogue"); // alone
// #endregion

// #region semaphore
const useGpu = () => locks.acquire("gpu", { mode: "shared", limit: 2 }); // two at once
// #endregion

const readers = [await read(), await read()];
console.log(`${readers.length} readers at once`);
const writer = write();
const asked = await Promise.race([writer, sleep(50, "waits")]);
console.log(`the writer ${asked === "waits" ? "waits for them" : "did not wait"}`);
for (const reader of readers) await reader.release();
await (await writer).release();
console.log("the writer had its turn");

let busy = 0;
let most = 0;
await Promise.all(
  Array.from({ length: 6 }, async () => {
    await using _lease = await useGpu();
    most = Math.max(most, ++busy);
    await sleep(10);
    busy--;
  }),
);
console.log(`six jobs, at most ${most} on the gpu at once`);
