import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";

/** What identifies a process well enough to prove, later and from another process, that it died. */
export interface ProcessIdentity {
  readonly boot: string;
  readonly pidNamespace: string;
  readonly pid: number;
  /** Start time in clock ticks since boot: tells a process from a later one with the same pid. */
  readonly started: string;
}

export interface Host extends ProcessIdentity {
  /** Instants of hostInstant() compare only between processes of one frame. */
  readonly frame: string;
}

/** This process, on this boot of this host. */
export function readHost(): Host {
  const boot = readBoot();
  return {
    boot,
    frame: `${boot}/${readNamespace("time")}`,
    pidNamespace: readNamespace("pid"),
    pid: process.pid,
    started: readStat(process.pid)?.started ?? UNKNOWN,
  };
}

/**
 * Dead is a proof, not a guess: only in our own boot and pid namespace does a pid say anything. A
 * process that we may not signal is alive. In doubt it is alive, and its lease is waited out.
 */
export function isProvenDead(other: ProcessIdentity, self: ProcessIdentity): boolean {
  if (other.boot !== self.boot || other.pidNamespace !== self.pidNamespace) return false;
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

/** Whether the other ran before the last boot of this host. A boot without a name says nothing. */
export function isOfEarlierBoot(other: ProcessIdentity, self: ProcessIdentity): boolean {
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
    return `${UNNAMED}${randomBytes(8).toString("hex")}`;
  }
}

function readNamespace(kind: "pid" | "time"): string {
  if (process.platform === "darwin") return "one";
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    // Kernels before 5.6 have no time namespaces, so all their processes share one clock.
    return kind === "time" ? "one" : UNKNOWN;
  }
}

interface Stat {
  readonly state: string;
  readonly threads: number;
  readonly started: string;
}

/** Of /proc/<pid>/stat. The name in field 2 may contain anything, so fields count from its end. */
function readStat(pid: number): Stat | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state: fields[0]!, threads: Number(fields[17]), started: fields[19]! };
  } catch {
    // Not Linux, or hidden from us: nothing is known of it, and so nothing proven.
    return null;
  }
}
