// Who holds a lock, who waits for it, and how an operator revokes it.
import { setTimeout as sleep } from "node:timers/promises";
import { connect, EngineError, type Locks } from "holdfast";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
const url = `sqlite:${folder.path}/locks.db`;

// #region show
async function show(locks: Locks, resource: string): Promise<void> {
  const { holders, waiters, closedMs } = await locks.inspect(resource);
  for (const { label, token, revoked } of holders) {
    console.log(`held by ${label}, token ${token}${revoked ? ", told to stop" : ""}`);
  }
  for (const { label, position } of waiters) console.log(`place ${position}: ${label}`);
  if (holders.length === 0) console.log(closedMs > 0 ? "closed by a lock-delay" : "free");
}
// #endregion

await using ours = await connect(url, { defaults: { label: "deploy of host 1" } });
await using theirs = await connect(url, { defaults: { label: "deploy of host 2" } });
await using locks = await connect(url);

const work = ours.run("deploy", async ({ signal }) => {
  // Work that stops when it is told to.
  await sleep(30_000, undefined, { signal }).catch(() => {});
});
while ((await locks.inspect("deploy")).holders.length === 0) await sleep(10);
const next = theirs.acquire("deploy");
while ((await locks.inspect("deploy")).waiters.length === 0) await sleep(10);
await show(locks, "deploy");

// #region list
for await (const { resource, holders, waiters } of locks.list({ match: "dep*" })) {
  console.log(`${resource}: ${holders.length} held, ${waiters.length} waiting`);
}
// #endregion

// #region revoke
const [holder] = (await locks.inspect("deploy")).holders;
if (holder !== undefined) {
  const outcome = await locks.revoke("deploy", { token: holder.token });
  console.log(outcome); // "gone" if that holder has released since then
}
// #endregion

// #region health
const probe = await connect(url, { defaults: { callTimeoutMs: 500 } }); // once, at the start

async function isAnswering(): Promise<boolean> {
  try {
    await probe.inspect("health");
    return true;
  } catch (error) {
    if (error instanceof EngineError) return false;
    throw error;
  }
}
// #endregion
console.log(`the backend ${(await isAnswering()) ? "answers" : "does not answer"}`);
await probe.close();

await work.catch((error: Error) => console.log(`its run rejects with ${error.name}`));
await using lease = await next;
await show(locks, "deploy");

// #region check
const live = await locks.check(lease.sequencer); // whether this grant is alive now
// #endregion
console.log(`the next one ${live ? "holds it" : "does not hold it"}`);
