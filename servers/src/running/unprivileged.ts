import { spawnSync } from "node:child_process";
import { chownSync } from "node:fs";

/** The user to whom a server is handed that refuses to run as root. */
export interface Servant {
  readonly uid: number;
  readonly gid: number;
  /** The command as that user would run it. */
  wrap(command: readonly [string, ...string[]]): readonly [string, ...string[]];
  /** Lets that user own what we made. */
  own(path: string): void;
}

/** Ourselves, unless we are root: then the user of this name, which the server's package made. */
export function servant(name: string): Servant {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid !== 0) return { uid, gid, wrap: (command) => command, own: () => {} };
  const ids = { uid: numberOf(["-u", name]), gid: numberOf(["-g", name]) };
  return {
    ...ids,
    // It becomes the command, so that the pid is the server's own.
    wrap: (command) => [
      ...(["setpriv", `--reuid=${ids.uid}`, `--regid=${ids.gid}`, "--init-groups"] as const),
      ...command,
    ],
    own: (path) => chownSync(path, ids.uid, ids.gid),
  };
}

/** Runs a preparation to its end; what it said is in the error. */
export function runOnce(command: readonly [string, ...string[]], cwd: string): void {
  const [file, ...args] = command;
  const { status, error, stdout, stderr } = spawnSync(file, args, { cwd, encoding: "utf8" });
  if (status === 0) return;
  throw new Error(`${file} failed: ${error?.message ?? ""}${stdout ?? ""}${stderr ?? ""}`);
}

function numberOf(args: readonly string[]): number {
  const { status, stdout, stderr } = spawnSync("id", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`no such user: ${stderr}`);
  return Number(stdout);
}
