// What a test run left behind: files in its temporary folder, processes that still run.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

// A server that was told to stop, or lost its parent, needs a moment.
const GRACE_MS = 3_000;
const LOOK_EVERY_MS = 50;

/**
 * Processes of this run that outlive a short grace period: [{ pid, command }]. Empty if not on
 * Linux.
 */
export async function survivors(runId, folder) {
  const deadline = Date.now() + GRACE_MS;
  for (;;) {
    const alive = processesOf(runId, folder);
    if (alive.length === 0 || Date.now() > deadline) return alive;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

export function killAll(processes) {
  for (const { pid } of processes) {
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      // The process has ended by itself.
      if (error.code !== "ESRCH") throw error;
    }
  }
}

function processesOf(runId, folder) {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => belongs(pid, runId, folder))
    .map((pid) => ({ pid: Number(pid), command: commandOf(pid) }));
}

// Servers that set their process title overwrite their environment. So the folder that they use is
// checked as well.
function belongs(pid, runId, folder) {
  try {
    if (commandOf(pid) === "") return false;
    return (
      readFileSync(`/proc/${pid}/environ`, "latin1").includes(runId) ||
      commandOf(pid).includes(folder) ||
      readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)
    );
  } catch {
    // The process ended meanwhile, or belongs to another user.
    return false;
  }
}

/** Empty for kernel threads and for zombies, which use no resources. */
function commandOf(pid) {
  return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
}
