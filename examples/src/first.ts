// One lock, and what is read and written under it. The lock ends with the block. The token is
// registered where the data lives before anything is read, and checked with the write.
import { setTimeout as sleep } from "node:timers/promises";
import { Invoices } from "./invoices.js";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
process.chdir(folder.path);
const invoices = new Invoices("invoices.db");
invoices.add(42, 100);

// #region first
import { connect } from "holdfast";

await using locks = await connect("sqlite:locks.db");

async function pay(id: number, amount: number): Promise<void> {
  await using lease = await locks.acquire(`invoice:${id}`, { waitMs: 5_000 });
  await invoices.register(lease); // 1. from here on, the store refuses older holders
  const due = await invoices.due(id); // 2. read
  await invoices.save(id, due - amount, lease); // 3. one transaction: check the token, write
} // given back here, whatever happened
// #endregion

await pay(42, 30);

// A holder that sleeps past its ttl between reading and writing.
const late = await locks.acquire("invoice:42", { ttlMs: 100, renew: false });
await invoices.register(late);
const due = await invoices.due(42);
await sleep(150);
await pay(42, 20);
try {
  await invoices.save(42, due - 1, late);
} catch (error) {
  console.log(`the late holder is refused: ${(error as Error).name}`);
}
console.log(`${await invoices.due(42)} are due`);
invoices.close();
