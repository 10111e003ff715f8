import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

// The kernel signals the members of a group one after the other; this is ample for the last one.
const SETTLE_MS = 20;
// It reads a pipe that only we hold open, so that it ends with us however we end. Ctrl-\ would
// otherwise make it leave a core file.
const SCRIPT = "ulimit -c 0; exec cat";

/**
 * Tells whether a signal reached us alone or our whole process group.
 *
 * The command shares our group, since only so can it use the terminal. Ctrl-C then reaches both of
 * us, and passing it on would deliver it twice, which many programs read as "stop tidying up". But
 * `kill -INT` of us alone must be passed on. The sender's address is not to be had here, so an idle
 * process stands in the same group: what it died of went to everybody.
 */
export class SignalProbe {
  #process = start();

  async received(signal: NodeJS.Signals): Promise<boolean> {
    await sleep(SETTLE_MS);
    const { process: before, ended } = this.#process;
    // The next signal may follow at once, and needs a probe that is alive.
    this.#process = start();
    // The first deadly signal decides what a process died of, so ours changes nothing that was.
    before.kill("SIGKILL");
    const end = await ended;
    if (end === "never-started") return signal === "SIGINT" && process.stderr.isTTY === true;
    return end === signal;
  }

  async stop(): Promise<void> {
    this.#process.process.kill("SIGKILL");
    await this.#process.ended;
  }
}

type End = NodeJS.Signals | "never-started" | null;

function start(): { readonly process: ChildProcess; readonly ended: Promise<End> } {
  const probe = spawn("/bin/sh", ["-c", SCRIPT], { stdio: ["pipe", "ignore", "ignore"] });
  probe.stdin?.on("error", () => {});
  const ended = new Promise<End>((resolve) => {
    probe.once("error", () => resolve("never-started"));
    probe.once("exit", (_, signal) => resolve(signal));
  });
  return { process: probe, ended };
}
