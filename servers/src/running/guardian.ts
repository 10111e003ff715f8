import { spawn } from "node:child_process";

export interface Guardian {
  /** Call this after the server was stopped: there is nothing left to guard. */
  dismiss(): void;
}

/**
 * Ends a server and removes its folder when this process ends in any way, even by SIGKILL. After
 * SIGKILL none of our code runs, but the kernel closes our end of a pipe. A shell that reads from
 * the pipe sees that and cleans up.
 */
export function guard(pid: number, folder: string): Guardian {
  const shell = spawn("sh", ["-c", SCRIPT, "guardian", String(pid), folder], {
    // In its own process group, so that killing our group does not kill the guardian.
    detached: true,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.unref();
  // If the guardian was killed first, the pipe is broken. That does not matter.
  shell.stdin.on("error", () => {});
  // The pipe is a socket, which has unref. Its type does not say so.
  (shell.stdin as unknown as { unref?: () => void }).unref?.();
  return { dismiss: () => void shell.stdin.end("dismissed\n") };
}

// A line means that the server was stopped. The end of input without a line means that this process
// has ended. The folder is removed twice, because a dying server may still create a file.
const SCRIPT = `
if read -r line; then exit 0; fi
kill -9 -"$1" 2>/dev/null
rm -rf -- "$2"
sleep 0.2
rm -rf -- "$2"
`;
