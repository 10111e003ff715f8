import { spawn } from "node:child_process";

export interface Guardian {
  /** The server was stopped in order; there is nothing left to guard. */
  dismiss(): void;
}

/**
 * Ends a server and removes its folder when this process ends in whatever way, SIGKILL included:
 * then nothing of ours can run any more, but the kernel still closes our end of a pipe. A shell that
 * reads from it is all that it takes.
 */
export function guard(pid: number, folder: string): Guardian {
  const shell = spawn("sh", ["-c", SCRIPT, "guardian", String(pid), folder], {
    // Not of our process group: whoever kills that must not kill the guardian with it.
    detached: true,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  shell.unref();
  // A guardian that was killed first leaves a broken pipe, which is nobody's concern.
  shell.stdin.on("error", () => {});
  // The pipe's type does not tell that it is a socket, which can be unreferenced.
  (shell.stdin as unknown as { unref?: () => void }).unref?.();
  return { dismiss: () => void shell.stdin.end("dismissed\n") };
}

// A line means dismissed; the end of input without one means that we are gone. Removed twice: a
// server in the middle of a write may create one more file while it dies.
const SCRIPT = `
if read -r line; then exit 0; fi
kill -9 -"$1" 2>/dev/null
rm -rf -- "$2"
sleep 0.2
rm -rf -- "$2"
`;
