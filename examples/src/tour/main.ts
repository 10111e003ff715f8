// The tour: what a lock must withstand, shown with real processes on this machine. `--json` prints
// the facts instead. The exit code is 1 if anything that it claims did not hold.
import { mkdtempSync, rmSync } from "node:fs";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "holdfast";
import { contend } from "./act-contend.js";
import { kill } from "./act-kill.js";
import { fencedPause, pause } from "./act-pause.js";
import { type Facts, judge } from "./facts.js";
import { Screen } from "./screen.js";
import { Shop } from "./shop.js";
import { NAMES, Stage } from "./stage.js";
import { sayWhatNext, showJson, showSummary } from "./summary.js";

const TIME_LIMIT_MS = 90_000;

const json = process.argv.includes("--json");
const screen = new Screen(NAMES, json);
const folder = mkdtempSync(join(tmpdir(), "holdfast-tour-"));
const removeFolder = () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
let stage: Stage | null = null;
let leaving = false;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.once(signal, () => leave(128 + constants.signals[signal]));
}
const limit = setTimeout(() => {
  process.stderr.write(`The tour took longer than ${TIME_LIMIT_MS} ms and was ended.\n`);
  leave(1);
}, TIME_LIMIT_MS);

try {
  const { facts, tookMs } = await play();
  const claims = judge(facts);
  if (json) showJson(facts, claims, tookMs);
  else showSummary(screen, claims, tookMs);
  if (!json) sayWhatNext(screen);
  process.exitCode = claims.every(({ holds }) => holds) ? 0 : 1;
} catch (error) {
  // Leaving early ends the processes that an act is waiting for.
  if (!leaving) console.error(error);
  process.exitCode = 1;
} finally {
  clearTimeout(limit);
  removeFolder();
}

async function play(): Promise<{ facts: Facts; tookMs: number }> {
  const startedAt = performance.now();
  const url = `sqlite:${join(folder, "locks.db")}`;
  await using locks = await connect(url);
  Shop.build(join(folder, "shop.db"));
  stage = new Stage(folder, url, screen, locks);
  screen.welcome();
  try {
    await Promise.all(stage.actors.map((actor) => actor.next("ready")));
    const increments = await contend(stage);
    const killed = await kill(stage);
    const unfenced = await pause(stage);
    const fenced = await fencedPause(stage);
    const { grants, actors } = stage;
    const tookMs = performance.now() - startedAt;
    const acts = { increments, kill: killed, unfenced, fenced };
    return { facts: { processes: actors.length, grants, ...acts }, tookMs };
  } finally {
    await Promise.all(stage.actors.map((actor) => actor.dismiss()));
  }
}

/** Nothing is left behind, not even a process that is stopped, or dead and not yet collected. */
async function leave(exitCode: number): Promise<void> {
  leaving = true;
  await Promise.all((stage?.actors ?? []).map((actor) => actor.dismiss()));
  removeFolder();
  process.exit(exitCode);
}
