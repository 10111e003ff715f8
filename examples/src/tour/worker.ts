// One of the processes that contend. It does what it is told and reports what it saw; whether that
// was right is for the director to judge.
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Lease } from "holdfast";
import { type Answer, instant, type Order, type Report } from "./messages.js";

const [url = "", resource = "", label = ""] = process.argv.slice(2);
// However the director ends, nobody stays behind.
process.on("disconnect", () => process.exit());

const locks = await connect(url, { defaults: { label, waitMs: 30_000 } });
let lease: Lease | null = null;
let answered: (answer: string) => void = () => {};

process.on("message", (message: Order | Answer) => {
  if ("answer" in message) answered(message.answer);
  else obey(message).catch(fail);
});
await tell({ say: "ready" });

async function obey(order: Order): Promise<void> {
  switch (order.do) {
    case "count":
      for (let round = 0; round < order.rounds; round++) await count(order.file, order.holdMs);
      return;
    case "hold":
      await acquire(order.ttlMs);
      return;
    case "freeze":
      return freeze(await acquire(order.ttlMs));
    case "take":
      return write(await acquire(order.ttlMs));
    case "give-back":
      await tell({ say: "still", held: lease?.held === true });
      return giveBack();
  }
}

/** Reads, waits, writes: without a lock, others would write in between and counts would go missing. */
async function count(file: string, holdMs: number): Promise<void> {
  await acquire(5_000);
  const from = Number(await readFile(file, "utf8"));
  await sleep(holdMs);
  await writeFile(file, String(from + 1));
  await tell({ say: "counted", from, to: from + 1 });
  await giveBack();
}

/**
 * Blocks the event loop and waits to be stopped. A gap in the clock is how it learns that it was;
 * the next statement asks the lease, before any timer, message or renewal could have run.
 */
async function freeze(mine: Lease): Promise<void> {
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  let stoppedMs = 0;
  for (let before = instant(); stoppedMs < 500; before = instant()) {
    Atomics.wait(nothing, 0, 0, 5);
    stoppedMs = instant() - before;
  }
  const held = mine.held;
  let threw = "nothing";
  try {
    mine.assertHeld();
  } catch (error) {
    threw = (error as Error).name;
  }
  await tell({ say: "awake", held, stoppedMs, threw });
  // What a program without that check would do. The register must refuse it.
  await write(mine);
  await giveBack();
}

async function acquire(ttlMs: number): Promise<Lease> {
  await tell({ say: "asking" });
  lease = await locks.acquire(resource, { ttlMs });
  const { token, sequencer } = lease;
  await tell({ say: "granted", token: String(token), at: instant(), sequencer });
  return lease;
}

async function write(mine: Lease): Promise<void> {
  const answer = new Promise<string>((resolve) => {
    answered = resolve;
  });
  await tell({ say: "write", token: String(mine.token), value: `by ${label}` });
  await tell({ say: "written", outcome: await answer });
}

async function giveBack(): Promise<void> {
  const at = instant();
  const outcome = (await lease?.release()) ?? "gone";
  await tell({ say: "released", outcome, at });
}

/** Resolves when the report is on its way, so that a stop right after it cannot hold it back. */
function tell(report: Report): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(report, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

function fail(error: unknown): void {
  console.error(`${label}:`, error);
  process.exit(1);
}
