import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { endOf } from "./progress.mjs";
import { killAll, survivors } from "./testing/leftovers.mjs";
import { filesBelow, INTERNAL_CONDITION, root, stateFolder, workspaces } from "./workspace.mjs";

const RUNNER = fileURLToPath(new URL("./testing/test-runner.mjs", import.meta.url));
// A part of the path of each, the longest first. wrong-engines and polled-memory lie below conformance.
const LONGEST = [
  "simulator/million",
  "simulator/mutants",
  "wrong-engines",
  "postgres/test/conformance",
  "redis/test/conformance",
  "simulator/simulator",
  "conformance",
  "schedules",
  "torture",
  "run-signals",
  "faults/replaced",
  "nodes/quarantine",
  "survival",
  "access",
  "ensemble",
  "isolation",
  "verbs/init",
];
// For a file that hangs: beside endless loops one takes several times as long as on a quiet machine.
const FILE_TIMEOUT_MS = 15 * 60_000;
const LONG_FILE_TIMEOUT_MS = 60 * 60_000;

/**
 * The paths that the test files have, or will have, when they are compiled. With filters, only paths
 * that contain one of them.
 */
export function findTestFiles({ long, filters }) {
  return workspaces()
    .flatMap((folder) => filesBelow(`${folder}/src`).map((path) => compiled(folder, path)))
    .filter((path) => path.endsWith(".test.js") && path.endsWith(".long.test.js") === long)
    .filter((path) => filters.length === 0 || filters.some((filter) => path.includes(filter)));
}

function compiled(folder, path) {
  return path.replace(`${folder}/src/`, `${folder}/dist/`).replace(/\.ts$/, ".js");
}

/**
 * Runs test files with one Node binary in their own temporary folder. Returns the reasons why the
 * run failed: failed tests, no tests, files left behind, processes left behind. report: a file that
 * gets a line of JSON for each test. times: whether to show the slowest files. env: additional
 * variables.
 */
export async function runTests({
  node = process.execPath,
  files,
  long = false,
  env = {},
  report = null,
  times = false,
}) {
  if (files.length === 0) return ["no test file was found"];
  const runId = randomUUID();
  const folder = mkdtempSync(join(tmpdir(), "hf-"));
  // Servers that refuse to run as root must be able to enter this folder to reach their own.
  chmodSync(folder, 0o711);
  const child = spawn(node, testArguments(files, long, report, times), {
    cwd: root,
    // Its own process group: Ctrl-C reaches this process alone, which then ends the group in order.
    detached: true,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...testEnvironment(runId, folder), ...env },
  });
  const sweep = async () => {
    const alive = await survivors(runId, folder);
    killAll(alive);
    const left = readdirSync(folder);
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    return { alive, left };
  };
  const code = await endOf(child, sweep);
  const { alive, left } = await sweep();
  return [
    ...(code === 0 ? [] : [`the tests ended with ${code}`]),
    ...left.map((name) => `left in the temporary folder: ${name}`),
    ...alive.map(({ pid, command }) => `still running: ${pid} ${command}`),
  ];
}

function testArguments(files, long, report, times) {
  const plan = {
    files: longestFirst(files).map((file) => join(root, file)),
    // Many tests mostly wait: for an expiry, for a server to start, for a stopped process. More files
    // start while the processors idle. A fixed number would be too low for these tests, or so high
    // that tests with real servers fail when many compute at once.
    fewest: Math.ceil((long ? 1 : 1.5) * availableParallelism()),
    most: 3 * availableParallelism(),
    timeoutMs: long ? LONG_FILE_TIMEOUT_MS : FILE_TIMEOUT_MS,
    report,
    times,
  };
  return [
    // Works around a deadlock at exit, nodejs/node#54918: the process waits for the compiler's
    // threads, and one of these waits for the process to collect garbage. It once blocked a passed
    // file until its timeout.
    "--no-concurrent-recompilation",
    RUNNER,
    JSON.stringify(plan),
  ];
}

/**
 * Starts the longest kinds of files first. Started last, they would keep one core busy while others
 * idle.
 */
function longestFirst(files) {
  const rank = (file) => LONGEST.findIndex((kind) => file.includes(kind)) + 1 || LONGEST.length + 1;
  return [...files].sort((a, b) => rank(a) - rank(b));
}

function testEnvironment(runId, folder) {
  const env = { ...process.env, HOLDFAST_TEST_RUN: runId, TMPDIR: folder };
  // Otherwise npm and tsc keep compiled code in the temporary folder, which would look like a leak.
  env.NODE_DISABLE_COMPILE_CACHE = "1";
  // The simulator's tests import what users cannot.
  env.NODE_OPTIONS = `${env.NODE_OPTIONS ?? ""} ${INTERNAL_CONDITION}`.trim();
  env.HOLDFAST_TEMPLATES = join(stateFolder, "templates");
  return env;
}
