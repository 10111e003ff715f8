// Adds one to a register again and again, each time under the lock, until a line of input says that
// it is enough: increments <url> <register port> <ttlMs> <ioredis | node-redis>.
// Says "asks <loop>", "held <loop> <asked at> <waitedMs>", then "did <loop>", or the code of what
// kept it from it.
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { connect } from "../../connect.js";
import { EngineError, HoldfastError } from "../../errors.js";
import type { Locks } from "../../locks.js";
import { exponential } from "../../retry.js";
import { redisEngine } from "./index.js";
import { Register } from "./register.fixture.js";

const CONNECTS = 5;
const [url = "", registerPort = "", ttlMs = "0", client = ""] = process.argv.slice(2);
const options = { defaults: { ttlMs: Number(ttlMs), callTimeoutMs: 1_000, waitMs: 60_000 } };
const locks = await open();
const register = new Register(Number(registerPort));
let enough = false;
process.stdin.once("data", () => {
  enough = true;
});
await Promise.all([work(0), work(1)]);
process.exit(0);

async function work(loop: number): Promise<void> {
  // Where processes are killed before their second turn, some of the first ones are stale too.
  for (let turn = loop; !enough; turn++) {
    const askedAt = Date.now();
    const started = performance.now();
    const fair = loop === 0 ? "strict" : "cohort";
    console.log(`asks ${loop}`);
    try {
      const retry = exponential({ minMs: 20, maxMs: 200 });
      const lease = await locks.acquire("number", { fair, retry });
      console.log(`held ${loop} ${askedAt} ${performance.now() - started}`);
      try {
        const value = await register.read(lease.resource, lease.token);
        if (turn % 3 > 0) await sleep(15);
        // Every second time it forgets to ask, and the register alone stands before the number.
        if (turn % 2 === 0) lease.assertHeld();
        await register.write(lease.resource, lease.token, value + 1);
        console.log(`did ${loop}`);
      } finally {
        await lease.release();
      }
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      console.log(`${error.code} ${loop}`);
    }
  }
}

/** A failover may take longer than connect is willing to wait. */
async function open(): Promise<Locks> {
  for (let tries = 1; ; tries++) {
    try {
      return await connect(client === "ioredis" ? ioRedis() : url, options);
    } catch (error) {
      if (tries === CONNECTS || !(error instanceof EngineError && error.retryable)) throw error;
    }
  }
}

function ioRedis() {
  const client = new Redis(url, { retryStrategy: () => 20 });
  client.on("error", () => {});
  return redisEngine({ client });
}
