// Everything that happens to a lock is told on node:diagnostics_channel. Nothing is computed when
// nobody listens, and no event carries a secret.
import { setTimeout as sleep } from "node:timers/promises";
import { channels, connect, type Events } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();

// #region events
channels.acquired.subscribe((message) => {
  const { resource, label, waitedMs } = message as Events["acquired"];
  console.log(`${label} got ${resource}, waited ${waitedMs < 1_000 ? "not long" : "long"}`);
});
channels.released.subscribe((message) => {
  const { resource, outcome } = message as Events["released"];
  console.log(`${resource}: ${outcome}`);
});
channels.lost.subscribe((message) => {
  const { resource, reason } = message as Events["lost"];
  console.log(`${resource}: lost, ${reason}`);
});
// #endregion

await using locks = await connect(`sqlite:${folder.path}/locks.db`, {
  defaults: { label: "the example" },
});
await locks.run("invoice:42", async () => {});
try {
  await locks.run("invoice:43", { maxHoldMs: 50 }, async ({ signal }) => {
    // Work that listens. A lease alone would not keep the process alive.
    await sleep(5_000, undefined, { signal }).catch(() => {});
  });
} catch (error) {
  console.log(`run rejects with ${(error as Error).name}`);
}
