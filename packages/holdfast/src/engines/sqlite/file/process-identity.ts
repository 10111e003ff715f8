import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

/** What identifies a process well enough to prove, later and from another process, that it died. */
export interface ProcessIdentity {
  readonly boot: string;
  /**
   * One boot and one time namespace. Instants of hostInstant() compare only between processes of
   * one frame, and so do start times, which /proc shows shifted by the reader's time namespace.
   */
  readonly frame: string;
  readonly pidNamespace: string;
  readonly pid: number;
  /** Start time in clock ticks since boot: tells a process from a later one with the same pid. */
  readonly started: string;
}

/** This process, on this boot of this host. */
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
 * Dead is a proof, not a guess: only in our own frame and pid namespace does a pid say anything. A
 * process that we may not signal is alive. In doubt it is alive, and its lease is waited out.
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
  // A process nobody has collected yet is dead once its last thread is: it can write no more.
  if (now.state === "Z" && now.threads <= 1) return true;
  return other.started !== UNKNOWN && now.started !== other.started;
}

/**
 * Whether the other names another boot. Usually it ran before the last one, but a container may be
 * shown a boot id of its own and be alive. A boot without a name says nothing.
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
    // No way to name this boot: then no process shares our frame, and everything is waited out.
    return unnamed();
  }
}

/**
 * The number of a namespace is given again when nobody uses it any more, and its successor may have
 * another clock. The offsets tell the two apart.
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
    // We cannot tell which processes share our clock: treat none as sharing it, and wait everything out.
    return unnamed();
  }
}

/** Unlike a time namespace, one whose number is given again took all of its processes with it. */
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

/** Of /proc/<pid>/stat. The name in field 2 may contain anything, so fields count from its end. */
function readStat(pid: number): Stat | null {
  try {
    // A /proc that was mounted in another pid namespace shows another process under this number.
    if (readlinkSync("/proc/self") !== String(process.pid)) return null;
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0]!, threads: Number(fields[17]), started: fields[19]! };
  } catch {
    // Not Linux, or hidden from us: nothing is known of it, and so nothing proven.
    return null;
  }
}
