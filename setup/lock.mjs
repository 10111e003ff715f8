// One set-up at a time in one checkout. The files lock.1, lock.2, … in .setup/ name successive
// holders. Only the newest counts, and it is never deleted. So taking over from a dead process is
// safe: two processes that both see it dead try to link the same next number, and one of them
// loses.
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { showProgress } from "./progress.mjs";
import { SetupError } from "./script.mjs";
import { stateFolder } from "./workspace.mjs";

// Longer than any honest install; after that a person should look.
const PATIENCE_MS = 20 * 60_000;
const LOOK_EVERY_MS = 200;
const NAME = /^lock\.(\d+)$/;

/** Runs work while no other process holds the lock. Waiting processes show `what`. */
export async function withLock(what, work) {
  mkdirSync(stateFolder, { recursive: true });
  const mine = await take(what);
  try {
    return await work();
  } finally {
    // An empty file means released. A record is linked when it is complete, so it is never empty by
    // accident.
    writeFileSync(mine, "");
  }
}

async function take(what) {
  const draft = join(stateFolder, `draft.${randomUUID()}`);
  const self = { pid: process.pid, born: birthOf(process.pid), what };
  const deadline = Date.now() + PATIENCE_MS;
  let stopProgress;
  writeFileSync(draft, JSON.stringify(self));
  try {
    for (;;) {
      const last = numbers().at(-1) ?? 0;
      const holder = readHolder(last);
      if (holder === null || !isAlive(holder)) {
        if (linkNext(draft, last + 1)) return lockPath(last + 1);
        continue;
      }
      if (Date.now() > deadline) {
        throw new SetupError(`Process ${holder.pid} is still ${holder.what}. Is it stuck?`);
      }
      stopProgress ??= showProgress(`waiting for process ${holder.pid}, which is ${holder.what}`);
      await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
    }
  } finally {
    stopProgress?.();
    rmSync(draft, { force: true });
  }
}

function linkNext(draft, number) {
  try {
    linkSync(draft, lockPath(number));
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
  // This process may have slept between reading and linking. Then its number may have been used and
  // deleted already. In that case a newer number exists, because the newest is never deleted.
  if (numbers().at(-1) !== number) {
    rmSync(lockPath(number), { force: true });
    return false;
  }
  for (const older of numbers()) {
    if (older < number) rmSync(lockPath(older), { force: true });
  }
  return true;
}

function numbers() {
  return readdirSync(stateFolder)
    .map((name) => Number(NAME.exec(name)?.[1] ?? 0))
    .filter((number) => number > 0)
    .sort((a, b) => a - b);
}

function lockPath(number) {
  return join(stateFolder, `lock.${number}`);
}

function readHolder(number) {
  try {
    const text = readFileSync(lockPath(number), "utf8");
    return text === "" ? null : JSON.parse(text);
  } catch (error) {
    // A newer holder cleared it away. Linking the next number will find that out.
    if (error.code === "ENOENT") return null;
    throw error;
  }
}

function isAlive({ pid, born }) {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return error.code === "EPERM";
  }
  return birthOf(pid) === born;
}

/** Distinguishes a process from a later one with the same pid. A zombie counts as dead. */
function birthOf(pid) {
  if (process.platform !== "linux") return "";
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return fields[0] === "Z" ? "zombie" : `${boot}/${fields[19]}`;
  } catch {
    return "gone";
  }
}
