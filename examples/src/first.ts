// The first sample of the README: a function under a lock on Redis. The holder registers its token where
// the data lives before it reads, and checks the token with the write. examples.test.ts runs this
// program with the address of a test server.
import { setTimeout as sleep } from "node:timers/promises";
import { Invoices } from "./invoices.js";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
process.chdir(folder.path);
const invoices = new Invoices("invoices.db");
invoices.add(42, 100);

// #region first
import { connect } from "holdfast";

const locks = await connect("redis://127.0.0.1:6379");

await locks.run("invoice:42", async (lease) => {
  await invoices.register(lease); // 1. stores lease.token: smaller tokens are refused from now on
  const due = await invoices.due(42); // 2. read
  await invoices.save(42, due - 30, lease); // 3. check the token and write, in one transaction
});
// #endregion

// A holder that sleeps past its ttl between its read and its write.
const late = await locks.acquire("invoice:42", { ttlMs: 100, renew: false });
await invoices.register(late);
const due = await invoices.due(42);
await sleep(150);
await locks.run("invoice:42", async (lease) => {
  await invoices.register(lease);
  await invoices.save(42, (await invoices.due(42)) - 20, lease);
});
try {
  await invoices.save(42, due - 1, late);
} catch (error) {
  console.log(`the late holder is refused: ${(error as Error).name}`);
}
console.log(`${await invoices.due(42)} are due`);
invoices.close();
await locks.close();
