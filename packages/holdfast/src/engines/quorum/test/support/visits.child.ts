// Usage: visits <url> <register port> <ttlMs>. Takes the lock again and again and increments a register
// under it, until it reads a line from stdin. Prints "up" first. For each visit it prints
// "in <from> <to>", the instants between which it certainly held, by the host's monotonic clock, which
// is the same for all processes; then "did", or the code of the error.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../../../connect.js";
import { exponential } from "../../../../core/acquiring/retry.js";
import { hostInstant } from "../../../../core/runtime/clock.js";
import { HoldfastError } from "../../../../errors.js";
import { Register } from "../../../../test-support/fenced-register.fixture.js";

const [url = "", registerPort = "", ttlMs = "0"] = process.argv.slice(2);
const options = { defaults: { ttlMs: Number(ttlMs), callTimeoutMs: 1_000, waitMs: 60_000 } };
const locks = await connect(url, options);
const register = new Register(Number(registerPort));
let enough = false;
process.stdin.once("data", () => {
  enough = true;
});
console.log("up");
while (!enough) await visit();
process.exit(0);

async function visit(): Promise<void> {
  try {
    const retry = exponential({ minMs: 20, maxMs: 200 });
    const lease = await locks.acquire("number", { fair: "strict", retry });
    try {
      const from = hostInstant();
      if (!lease.held) return;
      const value = await register.read(lease.resource, lease.token);
      await sleep(5);
      await register.write(lease.resource, lease.token, value + 1);
      // Read before lease.held: if the lease is held then, it was held at this instant.
      const to = hostInstant();
      if (lease.held) console.log(`in ${from} ${to}`);
      console.log("did");
    } finally {
      await lease.release();
    }
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    console.log(error.code);
  }
}
