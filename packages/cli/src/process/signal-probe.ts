import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

// The kernel signals the members of a group one by one. This is enough time for all of them.
const SETTLE_MS = 20;
// The probe reads a pipe that only we hold open, so it ends when we do, however we end. Without
// `ulimit`, Ctrl-\ would make it leave a core file.
const SCRIPT = "ulimit -c 0; exec cat";

/**
 * Tells whether a signal reached us alone or our whole process group.
 *
 * The command must be in our group to use the terminal. So Ctrl-C reaches both of us, and
 * forwarding it would deliver it twice, which many programs understand as "stop cleaning up". But
 * `kill -INT` of us alone must be forwarded. Node does not tell who sent a signal. So an idle
 * process, the probe, is in the same group: a signal that ended the probe went to the whole group.
 */
export class SignalProbe {
  #process = start();

  async received(signal: NodeJS.Signals): Promise<boolean> {
    await sleep(SETTLE_MS);
    const { process: before, ended } = this.#process;
    // The next signal may follow at once and needs a live probe.
    this.#process = start();
    // The first fatal signal decides how a process ends, so our SIGKILL does not hide an earlier
    // one.
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
