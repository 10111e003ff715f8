// Adds one to its parent's register again and again, each time under the lock, until it is told that
// it is enough: increments <url> <ttlMs>. Says when its lease looked held, in the host's monotonic
// time, so that the parent can lay the intervals of all processes beside each other.
import { setTimeout as sleep } from "node:timers/promises";
import { hostInstant } from "../../clock.js";
import { connect } from "../../connect.js";
import { HoldfastError } from "../../errors.js";
import { exponential } from "../../retry.js";
import type { Answered, Asked, Said } from "./torture.fixture.js";

const [url = "", ttlMs = "0"] = process.argv.slice(2);
const retry = exponential({ minMs: 20, maxMs: 200 });
const locks = await connect(url, {
  defaults: { ttlMs: Number(ttlMs), callTimeoutMs: 2_000, waitMs: 60_000, retry },
});
const answers = new Map<number, (answer: Answered) => void>();
let asked = 0;
let enough = false;
process.on("message", (message: Answered | "enough") => {
  if (message === "enough") enough = true;
  else answers.get(message.id)?.(message);
});
process.on("disconnect", () => process.exit(1));
for (let turn = 0; !enough; turn++) await work(turn);
process.exit(0);

async function work(turn: number): Promise<void> {
  try {
    const lease = await locks.acquire("number", { fair: turn % 2 ? "strict" : "cohort" });
    const token = String(lease.token);
    let [from, to] = [Infinity, -Infinity];
    const look = () => {
      // The instants are taken inside of what is claimed, never beyond it.
      const before = hostInstant();
      const held = lease.held;
      if (!held) return false;
      from = Math.min(from, before);
      to = Math.max(to, before);
      return true;
    };
    try {
      look();
      const value = await ask({ verb: "read", token });
      for (let i = 0; i < 5 && look(); i++) await sleep(3);
      // Every other time it forgets to ask, and the register alone stands before the number.
      if (turn % 2 === 0) lease.assertHeld();
      await ask({ verb: "write", token, value: value + 1 });
      look();
    } finally {
      if (to >= from) say({ says: "held", token, from, to });
      await lease.release();
    }
  } catch (error) {
    if (!(error instanceof HoldfastError || (error as Error).message === "stale")) throw error;
    say({ says: "failed", code: error instanceof HoldfastError ? error.code : "FENCED_OUT" });
  }
}

function ask(question: Omit<Asked, "id" | "says">): Promise<number> {
  const id = asked++;
  return new Promise((resolve, reject) => {
    answers.set(id, ({ value }) => {
      answers.delete(id);
      if (value === null) reject(new Error("stale"));
      else resolve(value);
    });
    say({ says: "asks", id, ...question });
  });
}

function say(said: Said): void {
  process.send!(said);
}
