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
const LONGEST = [
  "simulator/simulator",
  "simulator/mutants",
  "schedules",
  "conformance",
  "torture",
  "wrong-engines",
];
const FILE_TIMEOUT_MS = 5 * 60_000;
const LONG_FILE_TIMEOUT_MS = 30 * 60_000;

/** The compiled test files, those whose path contains one of the filters if there are any. */
export function findTestFiles({ long, filters }) {
  return workspaces()
    .flatMap((folder) => filesBelow(`${folder}/dist`))
    .filter((path) => path.endsWith(".test.js") && path.endsWith(".long.test.js") === long)
    .filter((path) => filters.length === 0 || filters.some((filter) => path.includes(filter)));
}

/**
 * Runs test files with one Node binary in a temporary folder of their own. Returns the reasons why
 * the run is no success: failed tests, no tests, files left behind, processes left behind.
 * report: a file to which each test is written as a line of JSON. times: whether the slowest files are
 * shown. env: beside that of this process.
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
  // Servers that refuse to run as root must be able to walk through to their own folders.
  chmodSync(folder, 0o711);
  const child = spawn(node, testArguments(files, long, report, times), {
    cwd: root,
    // A group of its own: Ctrl-C reaches us alone, and we end the whole family in order.
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
    // Most tests wait most of the time: for an expiry, a server's start, a process that is stopped. Long ones
    // work harder.
    concurrency: Math.ceil((long ? 1.5 : 4) * availableParallelism()),
    timeoutMs: long ? LONG_FILE_TIMEOUT_MS : FILE_TIMEOUT_MS,
    report,
    times,
  };
  return [
    // A process whose event loop is over waits for the compiler's threads, and one of these may wait for
    // it to collect garbage: nodejs/node#54918. It once kept a file that had passed until its timeout.
    "--no-concurrent-recompilation",
    RUNNER,
    JSON.stringify(plan),
  ];
}

/** The kinds of file that take longest, begun last, would keep one core busy while the others idle. */
function longestFirst(files) {
  const rank = (file) => LONGEST.findIndex((kind) => file.includes(kind)) + 1 || LONGEST.length + 1;
  return [...files].sort((a, b) => rank(a) - rank(b));
}

function testEnvironment(runId, folder) {
  const env = { ...process.env, HOLDFAST_TEST_RUN: runId, TMPDIR: folder };
  // npm and tsc would keep compiled code in the temporary folder, and that is not a leak.
  env.NODE_DISABLE_COMPILE_CACHE = "1";
  // The simulator's tests import what users cannot.
  env.NODE_OPTIONS = `${env.NODE_OPTIONS ?? ""} ${INTERNAL_CONDITION}`.trim();
  env.HOLDFAST_TEMPLATES = join(stateFolder, "templates");
  return env;
}
