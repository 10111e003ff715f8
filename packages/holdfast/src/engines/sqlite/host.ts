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
    started: readStarted(process.pid) ?? "unknown",
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
  const started = readStarted(other.pid);
  return started !== null && other.started !== "unknown" && started !== other.started;
}

const UNKNOWN = "unknown";

function readBoot(): string {
  try {
    if (process.platform === "darwin") {
      return execFileSync("/usr/sbin/sysctl", ["-n", "kern.bootsessionuuid"]).toString().trim();
    }
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    // No way to name this boot: then no process shares our frame, and everything is waited out.
    return `unnamed-${randomBytes(8).toString("hex")}`;
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

/** Field 22 of /proc/<pid>/stat. The name in field 2 may contain anything, so count from its end. */
function readStarted(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    // Not Linux, or hidden from us: no start time, and so no proof from it.
    return null;
  }
}
