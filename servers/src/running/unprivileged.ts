import { spawnSync } from "node:child_process";
import { chownSync } from "node:fs";

/** The user for a server that refuses to run as root. */
export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
  /** The command as that user would run it. */
  wrap(command: readonly [string, ...string[]]): readonly [string, ...string[]];
  /** Makes that user the owner of a path. */
  own(path: string): void;
}

/** The current user; for root, the user of this name, which the server's package created. */
export function serverUser(name: string): ServerUser {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid !== 0) return { uid, gid, wrap: (command) => command, own: () => {} };
  const ids = { uid: numberOf(["-u", name]), gid: numberOf(["-g", name]) };
  return {
    ...ids,
    // It replaces itself by the command, so that the pid is the server's.
    wrap: (command) => [
      ...(["setpriv", `--reuid=${ids.uid}`, `--regid=${ids.gid}`, "--init-groups"] as const),
      ...command,
    ],
    own: (path) => chownSync(path, ids.uid, ids.gid),
  };
}

/** Runs a command to its end. The error of a failure contains its output. */
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
