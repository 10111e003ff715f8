// One of the processes that contend. It does what the director orders and reports what it saw. The
// director judges whether that was right.
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Lease } from "holdfast";
import { instant, type Order, type Report } from "./messages.js";
import { Shop } from "./shop.js";

const LONGEST_STOP_MS = 30_000;

const [url = "", resource = "", label = ""] = process.argv.slice(2);
// When the director ends in any way, this process ends too.
process.on("disconnect", () => process.exit());

const locks = await connect(url, { defaults: { label, waitMs: 30_000 } });
let lease: Lease | null = null;
let sell: () => Promise<void> = async () => {};

process.on("message", (order: Order) => {
  obey(order).catch(fail);
});
await tell({ say: "ready" });

async function obey(order: Order): Promise<void> {
  switch (order.do) {
    case "count":
      for (let round = 0; round < order.rounds; round++) await count(order.file, order.holdMs);
      return;
    case "take":
      await acquire(order.ttlMs);
      return;
    case "enter":
      return enter(await acquire(order.ttlMs), new Shop(order.shop, order.recipe), order.until);
    case "sell":
      return sell();
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

async function enter(mine: Lease, shop: Shop, until: string | undefined): Promise<void> {
  const units = shop.enter(mine);
  sell = async () => {
    const outcome = shop.sell(mine, units, label);
    shop.close();
    await tell({ say: "sold", outcome });
  };
  await tell({ say: "read", units });
  if (until === undefined) return;
  const stoppedMs = standStill(until);
  const held = mine.held;
  await tell({ say: "awake", held, stoppedMs, threw: whatAssertHeldThrows(mine) });
  // What a program does that asked a moment before it was stopped. The shop is the last to know better.
  await sell();
  await giveBack();
}

/**
 * Blocks the event loop and waits to be stopped, until the file is there. So the next statement runs
 * before any timer, message or renewal could. Gives the length of the stop.
 */
function standStill(until: string): number {
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  const startedAt = instant();
  let before = startedAt;
  let stoppedMs = 0;
  while (before - startedAt < LONGEST_STOP_MS) {
    const isOver = existsSync(until);
    const now = instant();
    stoppedMs = Math.max(stoppedMs, now - before);
    if (isOver) return stoppedMs;
    before = now;
    Atomics.wait(nothing, 0, 0, 5);
  }
  throw new Error(`nobody made ${until}`);
}

function whatAssertHeldThrows(mine: Lease): string {
  try {
    mine.assertHeld();
    return "nothing";
  } catch (error) {
    return (error as Error).name;
  }
}

async function acquire(ttlMs: number): Promise<Lease> {
  await tell({ say: "asking" });
  lease = await locks.acquire(resource, { ttlMs });
  const { token, sequencer } = lease;
  await tell({ say: "granted", token: String(token), at: instant(), sequencer });
  return lease;
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
