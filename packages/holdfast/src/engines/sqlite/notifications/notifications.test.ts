import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Granted } from "../../../engine.js";
import { ManualClock } from "../../../testing/index.js";
import type { LockTables } from "../records/lock-tables.js";
import { Notifications } from "./notifications.js";
import { WakeFiles } from "./wake-files.js";

// A push reports a ttl that started inside a transaction. Its reader does not know how long the
// commit or the wait for the write lock took, so the ttl counts from before both.

const folder = mkdtempSync(join(tmpdir(), "holdfast-notifications-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const ROW = { resource: "a", grant_id: "0", token: 7, tokens: 1, ttl_ms: 1_000 };
const TABLES = {
  granted: [ROW],
  peers: { toWake: [] },
  claimOwnGrants: () => [ROW],
  revokedOwnResources: () => [],
} as unknown as LockTables;
const TOOK_MS = 300;
/** Core's clock and the engine's clock show different times. */
const OFFSET_MS = 5_000;

/** Notifications whose transactions take a while, and the first push that they make. */
function setUp(name: string) {
  const clock = new ManualClock();
  const notifications = new Notifications(
    join(folder, name),
    "peer",
    clock,
    async (_call, work) => {
      clock.pause(TOOK_MS);
      return work(TABLES);
    },
  );
  notifications.learnClockOffset({
    startedAt: clock.now() + OFFSET_MS,
    timeoutMs: 1_000,
    order: 1,
  });
  const pushed = new Promise<Granted>((resolve) => {
    notifications.grantListeners.add((_ref, granted) => resolve(granted));
  });
  return { clock, notifications, pushed };
}

test("a push after our own commit counts from before the transaction", async () => {
  const { clock, notifications, pushed } = setUp("commit");
  const since = clock.now();
  clock.pause(TOOK_MS);
  notifications.notify(TABLES, since);
  assert.equal((await pushed).since, since + OFFSET_MS);
});

test("a push after a wake-up counts from before the transaction that claimed the grant", async (t) => {
  const { clock, notifications, pushed } = setUp("wake-up");
  const since = clock.now();
  notifications.listen();
  assert.notEqual(notifications.wakeFile, null, "this system can watch files");
  const wakeFiles = new WakeFiles(join(folder, "wake-up"));
  // Keeps the process alive, which watching a wake file does not.
  const waking = setInterval(() => wakeFiles.wake(notifications.wakeFile!), 20);
  t.after(() => {
    clearInterval(waking);
    notifications.close();
  });
  assert.equal((await pushed).since, since + OFFSET_MS);
});
