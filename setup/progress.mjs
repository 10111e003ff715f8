import { spawn } from "node:child_process";
import { root } from "./workspace.mjs";

// Shorter work is not reported: a second `npm start` prints nothing.
const QUIET_MS = 2_000;
const KILL_AFTER_MS = 3_000;
const KEPT_OUTPUT = 64 * 1024;
const ENDING_SIGNALS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };

/**
 * Shows on stderr what takes so long, from the third second on. Returns a function that stops it.
 */
export function showProgress(what) {
  const startedAt = Date.now();
  const live = process.stderr.isTTY === true;
  let shown = false;
  const seconds = () => `${Math.round((Date.now() - startedAt) / 1000)} s`;
  const tick = () => {
    shown = true;
    process.stderr.write(live ? `\r\x1b[K${what} … ${seconds()}` : `${what} … ${seconds()}\n`);
    // A log file gets a line from time to time. A terminal is updated every second.
    timer = setTimeout(tick, live ? 1_000 : 10_000);
  };
  let timer = setTimeout(tick, QUIET_MS);
  return () => {
    clearTimeout(timer);
    if (shown) process.stderr.write(`${live ? "\r\x1b[K" : ""}${what}: ${seconds()}\n`);
  };
}

/**
 * Runs a program and shows progress instead of its output: { code, output }, both streams in one.
 */
export async function runQuietly(what, file, args, { timeoutMs, env = process.env }) {
  const stopProgress = showProgress(what);
  // Its own process group, so that all its descendants can be stopped and none keeps changing
  // node_modules after this process has ended.
  const child = spawn(file, args, {
    cwd: root,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const timer = setTimeout(() => killGroup(child.pid, "SIGKILL"), timeoutMs);
  let output = "";
  let late = "";
  const keep = (chunk) => {
    if (output.length < KEPT_OUTPUT) output += chunk;
    else late = (late + chunk).slice(-KEPT_OUTPUT);
  };
  child.stdout.setEncoding("utf8").on("data", keep);
  child.stderr.setEncoding("utf8").on("data", keep);
  try {
    const code = await endOf(child);
    if (typeof code !== "number") keep(`${code}\n`);
    return { code, output: output + late };
  } finally {
    clearTimeout(timer);
    stopProgress();
  }
}

/**
 * The exit code of a child that leads its own process group, or the signal or error that ended it.
 * A signal to this process first ends the child: it is signalled, then killed, then cleanUp runs,
 * and then this process exits. The promise stays pending in that case, so that nothing else starts.
 */
export function endOf(child, cleanUp = async () => {}) {
  return new Promise((resolve) => {
    const listeners = Object.entries(ENDING_SIGNALS).map(([signal, exitCode]) => {
      const listener = async () => {
        child.removeAllListeners("close");
        killGroup(child.pid, signal);
        await Promise.race([
          new Promise((ended) => child.once("close", ended)),
          new Promise((patient) => setTimeout(patient, KILL_AFTER_MS)),
        ]);
        killGroup(child.pid, "SIGKILL");
        await cleanUp();
        process.exit(exitCode);
      };
      process.once(signal, listener);
      return [signal, listener];
    });
    const end = (how) => {
      for (const [signal, listener] of listeners) process.off(signal, listener);
      resolve(how);
    };
    child.once("error", (error) => end(error.message));
    child.once("close", (status, signal) => end(status ?? signal));
  });
}

function killGroup(pid, signal) {
  if (pid === undefined) return;
  try {
    process.kill(-pid, signal);
  } catch (error) {
    // ESRCH: no process of the group is left, which is the goal.
    if (error.code !== "ESRCH") throw error;
  }
}

/**
 * A program's output, or its start and its end if it is long. One of them usually has the reason.
 */
export function excerpt(output, most = 60) {
  const lines = output.trimEnd().split("\n");
  if (lines.length <= most) return lines.join("\n");
  const half = most / 2;
  return [...lines.slice(0, half), "…", ...lines.slice(-half)].join("\n");
}
