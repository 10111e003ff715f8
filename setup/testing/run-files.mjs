import { run } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createIdleMeter } from "./idle-meter.mjs";

/** A file that has just started uses little of a processor, so the next one waits for a while. */
const LOOK_EVERY_MS = 500;
/** With more than this share of the processors idle, there is room for one more file. */
const ENOUGH_IDLE = 0.35;
const COUNT = /^(tests|suites|pass|fail|cancelled|skipped|todo) (\d+)$/;

/**
 * The events of `node:test` for these files: whole files, one after the other, and one summary at
 * the end. `fewest` files run at once in any case, and up to `most` while the processors idle.
 */
export async function* runFiles({ files, fewest, most, timeoutMs }) {
  const startedAt = performance.now();
  const idleShare = createIdleMeter(LOOK_EVERY_MS);
  const waiting = [...files];
  /** By file: a promise of the file and its events. */
  const running = new Map();
  const totals = new Map();
  while (waiting.length + running.size > 0) {
    const isIdle = idleShare() > ENOUGH_IDLE;
    if (waiting.length > 0 && (running.size < fewest || (running.size < most && isIdle))) {
      const file = waiting.shift();
      running.set(file, runFile(file, timeoutMs));
    }
    if (waiting.length > 0 && running.size < fewest) continue;
    const ended = await Promise.race([
      ...running.values(),
      sleep(LOOK_EVERY_MS, null, { ref: false }),
    ]);
    if (ended === null) continue;
    running.delete(ended.file);
    yield* ended.events.filter((event) => !addToTotals(totals, event));
  }
  for (const [name, count] of totals) yield diagnostic(`${name} ${count}`);
  yield diagnostic(`duration_ms ${performance.now() - startedAt}`);
}

/** Resolves when the file has ended. A file that ends with an error has an event that says so. */
async function runFile(file, timeout) {
  return { file, events: await run({ files: [file], timeout }).toArray() };
}

/** Whether the event is a part of the summary of one file, which becomes a part of ours. */
function addToTotals(totals, { type, data }) {
  if (type === "test:summary" || (type === "test:plan" && data.nesting === 0)) return true;
  if (type !== "test:diagnostic" || data.nesting !== 0) return false;
  const [, name, count] = COUNT.exec(data.message) ?? [];
  if (name !== undefined) totals.set(name, (totals.get(name) ?? 0) + Number(count));
  return name !== undefined || data.message.startsWith("duration_ms ");
}

function diagnostic(message) {
  return { type: "test:diagnostic", data: { nesting: 0, message, level: "info" } };
}
