import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Granted } from "../../../engine.js";
import { ManualClock } from "../../../testing/index.js";
import type { Ledger } from "../records/lock-tables.js";
import { News } from "./notifications.js";
import { Bells } from "./wake-file.js";

// A push tells of a life that began inside a transaction. How long the commit took, or the lock
// before it, is known to nobody who reads the push, so it counts from before both.

const folder = mkdtempSync(join(tmpdir(), "holdfast-news-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const ROW = { resource: "a", grant_id: "0", token: 7, tokens: 1, ttl_ms: 1_000 };
const LEDGER = {
  granted: [ROW],
  peers: { rings: [] },
  claimOwn: () => [ROW],
  revokedOwn: () => [],
} as unknown as Ledger;
const TOOK_MS = 300;
/** Core's clock and the engine's read differently. */
const OFFSET_MS = 5_000;

/** News whose transactions take a while, and the first push that it makes. */
function stage(name: string) {
  const clock = new ManualClock();
  const news = new News(join(folder, name), "peer", clock, async (_call, work) => {
    clock.pause(TOOK_MS);
    return work(LEDGER);
  });
  news.learn({ startedAt: clock.now() + OFFSET_MS, timeoutMs: 1_000, order: 1 });
  const pushed = new Promise<Granted>((resolve) => {
    news.grantListeners.add((_ref, granted) => resolve(granted));
  });
  return { clock, news, pushed };
}

test("a push after our own commit counts from before the transaction", async () => {
  const { clock, news, pushed } = stage("commit");
  const since = clock.now();
  clock.pause(TOOK_MS);
  news.tell(LEDGER, since);
  assert.equal((await pushed).since, since + OFFSET_MS);
});

test("a push after a bell counts from before the transaction that claimed it", async (t) => {
  const { clock, news, pushed } = stage("bell");
  const since = clock.now();
  news.listen();
  assert.notEqual(news.bell, null, "this system can watch files");
  const bells = new Bells(join(folder, "bell"));
  // Keeps the process alive, which a bell does not.
  const ringing = setInterval(() => bells.ring(news.bell!), 20);
  t.after(() => {
    clearInterval(ringing);
    news.close();
  });
  assert.equal((await pushed).since, since + OFFSET_MS);
});
