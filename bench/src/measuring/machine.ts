import { execFileSync } from "node:child_process";
import { cpus, loadavg, platform, release, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const GIT_TIMEOUT_MS = 5_000;

export interface Machine {
  readonly cores: number;
  readonly cpu: string;
  readonly memoryMiB: number;
  readonly node: string;
  readonly platform: string;
  /** The load before the first measurement. On a busy machine other programs change the numbers. */
  readonly load: number;
}

export function describeMachine(): Machine {
  const cores = cpus();
  return {
    cores: cores.length,
    cpu: cores[0]?.model.trim() ?? "unknown",
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    node: process.versions.node,
    platform: `${platform()} ${release()} ${process.arch}`,
    load: Math.round((loadavg()[0] ?? 0) * 100) / 100,
  };
}

/** The commit that was measured; nulls outside a git repository. */
export function describeCommit(): { commit: string | null; changed: boolean | null } {
  try {
    return { commit: git("rev-parse", "HEAD"), changed: git("status", "--porcelain") !== "" };
  } catch {
    return { commit: null, changed: null };
  }
}

function git(...args: string[]): string {
  const stdio: ["ignore", "pipe", "ignore"] = ["ignore", "pipe", "ignore"];
  const options = { cwd: HERE, encoding: "utf8", timeout: GIT_TIMEOUT_MS, stdio } as const;
  return execFileSync("git", args, options).trim();
}
