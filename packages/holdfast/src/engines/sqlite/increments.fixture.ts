// Adds one to a register, count times, each time under the lock:
// increments <url> <register file> <count> <ttlMs> <lingerMs>. Any line of input ends it early.
// Says "held <token> <asked at> <waitedMs>", then "did <token>", "LEASE_LOST <token>" if it noticed
// its own loss, or "FENCED_OUT <token>" if the register refused.
import { setTimeout as sleep } from "node:timers/promises";
import { connect } from "../../connect.js";
import { FencedOutError, LeaseLostError } from "../../errors.js";
import { Register } from "./register.fixture.js";

const [url = "", path = "", count = "0", ttlMs = "0", lingerMs = "0"] = process.argv.slice(2);
const locks = await connect(url);
const register = await Register.open(path);
let enough = false;
process.stdin.once("data", () => {
  enough = true;
});
for (let done = 0, turn = 0; done < Number(count) && !enough; turn++) {
  const askedAt = Date.now();
  const started = performance.now();
  const lease = await locks.acquire("number", { ttlMs: Number(ttlMs), waitMs: 60_000 });
  console.log(`held ${lease.token} ${askedAt} ${performance.now() - started}`);
  try {
    const value = register.read(lease.resource, lease.token);
    if (turn % 3 > 0 && Number(lingerMs) > 0) await sleep(Number(lingerMs));
    // Every second time it forgets to ask, and the register alone stands between it and the number.
    if (turn % 2 === 0) lease.assertHeld();
    register.write(lease.resource, lease.token, value + 1);
    console.log(`did ${lease.token}`);
    done++;
  } catch (error) {
    if (!(error instanceof LeaseLostError || error instanceof FencedOutError)) throw error;
    console.log(`${error.code} ${lease.token}`);
  }
  await lease.release();
}
process.stdin.destroy();
register.close();
await locks.close();
