// One lock, one write under it. The lock ends with the block, the token travels with the write.
import { connect } from "holdfast";
import { Invoices } from "./invoices.js";
import { temporaryFolder } from "./temporary-folder.js";

await using folder = await temporaryFolder();
process.chdir(folder.path);
const invoices = new Invoices();

// #region first
await using locks = await connect("sqlite:locks.db");

async function pay(id: number): Promise<bigint> {
  await using lease = await locks.acquire(`invoice:${id}`, { waitMs: 5_000 });
  await invoices.save(id, "paid", lease.token); // refuses a token smaller than one it has seen
  return lease.token;
} // given back here, whatever happened
// #endregion

const first = await pay(42);
const second = await pay(42);
console.log(`invoice 42 is ${invoices.status(42)}; second token greater: ${second > first}`);
try {
  await invoices.save(42, "open", first);
} catch (error) {
  console.log(`a stale write is refused: ${(error as Error).name}`);
}
