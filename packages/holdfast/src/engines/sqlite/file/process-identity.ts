import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

/** Identifies a process well enough that another process can prove later that it died. */
export interface ProcessIdentity {
  readonly boot: string;
  /**
   * A frame is one boot and one time namespace. Instants of hostInstant() can be compared only
   * between processes of one frame. The same is true of start times, because /proc shifts them by
   * the reader's time namespace.
   */
  readonly frame: string;
  readonly pidNamespace: string;
  readonly pid: number;
  /**
   * Start time in clock ticks since boot. It distinguishes a process from a later one with the same
   * pid.
   */
  readonly started: string;
}

export function readProcessIdentity(): ProcessIdentity {
  const boot = readBoot();
  return {
    boot,
    frame: `${boot}/${readTimeNamespace()}`,
    pidNamespace: readPidNamespace(),
    pid: process.pid,
    started: readStat(process.pid)?.started ?? UNKNOWN,
  };
}

/**
 * Death must be proven, not guessed: a pid means something only in our own frame and pid namespace.
 * A process that we may not signal is alive. In doubt the process counts as alive, and others wait
 * until its lease expires.
 */
export function isProvenDead(other: ProcessIdentity, self: ProcessIdentity): boolean {
  if (other.frame !== self.frame || other.pidNamespace !== self.pidNamespace) return false;
  if (self.pidNamespace === UNKNOWN || other.pid === self.pid) return false;
  try {
    process.kill(other.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return true;
  }
  const now = readStat(other.pid);
  if (now === null) return false;
  // A zombie is dead once its last thread has ended: it can no longer write.
  if (now.state === "Z" && now.threads <= 1) return true;
  return other.started !== UNKNOWN && now.started !== other.started;
}

/**
 * Whether the other process names another boot. Usually it ran before the last boot, but a
 * container may see a boot id of its own and be alive. An unnamed boot proves nothing.
 */
export function isOfOtherBoot(other: ProcessIdentity, self: ProcessIdentity): boolean {
  const named = !other.boot.startsWith(UNNAMED) && !self.boot.startsWith(UNNAMED);
  return named && other.boot !== self.boot;
}

const UNKNOWN = "unknown";
const UNNAMED = "unnamed-";

function readBoot(): string {
  try {
    if (process.platform === "darwin") {
      return execFileSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"]).toString().trim();
    }
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // This boot has no name, so no process shares our frame, and all leases are waited out.
    return unnamed();
  }
}

/**
 * The system reuses the number of a namespace that no process uses any more, and the new namespace
 * may have another clock. The clock offsets distinguish the two.
 */
function readTimeNamespace(): string {
  if (process.platform === "darwin") return "one";
  let namespace: string;
  try {
    namespace = readlinkSync("/proc/self/ns/time");
  } catch (error) {
    // Kernels before 5.6 have no time namespaces, so all their processes share one clock.
    return (error as NodeJS.ErrnoException).code === "ENOENT" ? "one" : unnamed();
  }
  try {
    const offsets = readFileSync("/proc/self/timens_offsets", "latin1").match(/-?\d+/g) ?? [];
    return `${namespace}/${offsets.join(",")}`;
  } catch {
    // It is unknown which processes share our clock. None counts as sharing it, and all leases are
    // waited out.
    return unnamed();
  }
}

/** Reuse of a pid namespace's number is harmless: all processes of the old namespace are dead. */
function readPidNamespace(): string {
  if (process.platform === "darwin") return "one";
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return UNKNOWN;
  }
}

function unnamed(): string {
  return `${UNNAMED}${randomBytes(8).toString("hex")}`;
}

interface Stat {
  readonly state: string;
  readonly threads: number;
  readonly started: string;
}

/**
 * Reads /proc/<pid>/stat. The name in field 2 may contain anything, so fields count from its end.
 */
function readStat(pid: number): Stat | null {
  try {
    // A /proc that was mounted in another pid namespace shows another process under this number.
    if (readlinkSync("/proc/self") !== String(process.pid)) return null;
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0]!, threads: Number(fields[17]), started: fields[19]! };
  } catch {
    // Not Linux, or hidden from us: nothing is known about the process, so nothing is proven.
    return null;
  }
}
