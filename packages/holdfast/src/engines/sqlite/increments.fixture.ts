// Adds one to the number in a file, count times, each time under the lock:
// increments <url> <number file> <log file> <count> <ttlMs>.
// Says "did <token> <waitedMs>" after each; the log gets each token inside the critical section.
import { appendFileSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { connect } from "../../connect.js";

const [url = "", number = "", log = "", count = "0", ttlMs = "0"] = process.argv.slice(2);
const locks = await connect(url);
for (let i = 0; i < Number(count); i++) {
  const started = performance.now();
  const lease = await locks.acquire("number", { ttlMs: Number(ttlMs), waitMs: 60_000 });
  const waitedMs = performance.now() - started;
  const next = Number(readFileSync(number, "utf8")) + 1;
  // A rename is whole or not at all, whenever this process is killed.
  const draft = `${number}.${process.pid}`;
  writeFileSync(draft, String(next));
  lease.assertHeld();
  appendFileSync(log, `${lease.token}\n`);
  renameSync(draft, number);
  console.log(`did ${lease.token} ${waitedMs}`);
  await lease.release();
}
await locks.close();
