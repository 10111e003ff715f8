// Adds one to a register again and again, each time under the lock, until a line of input says that it
// is enough: increments <url> <register port> <ttlMs>.
// Says "in" when it has the lock, and "held <token> <from> <to>": between these instants of the host's clock it was sure to hold. Then
// "did" or the code of what kept it from it.
import { setTimeout as sleep } from "node:timers/promises";
import { hostInstant } from "../../clock.js";
import { connect } from "../../connect.js";
import { HoldfastError } from "../../errors.js";
import { exponential } from "../../retry.js";
import { ask } from "./register.fixture.js";

const [url = "", registerPort = "", ttlMs = "0"] = process.argv.slice(2);
const defaults = { ttlMs: Number(ttlMs), callTimeoutMs: 2_000, waitMs: 60_000 };
const locks = await connect(url, { defaults });
const port = Number(registerPort);
let enough = false;
process.stdin.once("data", () => {
  enough = true;
});

for (let turn = 0; !enough; turn++) {
  try {
    const retry = exponential({ minMs: 20, maxMs: 200 });
    const lease = await locks.acquire("number", { fair: "strict", retry });
    const from = hostInstant();
    let to = lease.held ? from : Number.NaN;
    console.log("in");
    const look = () => {
      const now = hostInstant();
      if (lease.held) to = now;
    };
    try {
      const value = await ask(port, lease.token);
      look();
      if (turn % 3 > 0) await sleep(15);
      look();
      // Every second time it forgets to ask, and the register alone stands before the number.
      if (turn % 2 === 0) lease.assertHeld();
      await ask(port, lease.token, value + 1);
      look();
      console.log("did");
    } finally {
      console.log(`held ${lease.token} ${from} ${to}`);
      await lease.release();
    }
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    console.log(error.code);
  }
}
process.exit(0);
