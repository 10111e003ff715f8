import { spawn } from "node:child_process";
import { once } from "node:events";
import { instant, pause, within } from "./instant.js";

const ECHO = "process.stdin.pipe(process.stdout)";
const ANSWER_TIMEOUT_MS = 5_000;

/**
 * One byte to another process and back, which is the least that two processes need to agree. With
 * pauses in between: a machine that never sleeps answers faster than one that has to wake up.
 */
export async function measureRoundTrips(
  seconds: number,
  pauseMs: (i: number) => number,
  most: number,
): Promise<number[]> {
  const child = spawn(process.execPath, ["-e", ECHO], { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  const roundTrip = async () => {
    const startedAt = instant();
    const back = once(child.stdout, "data");
    child.stdin.write("x");
    await within(ANSWER_TIMEOUT_MS, "a round trip", back);
    return instant() - startedAt;
  };
  const times: number[] = [];
  try {
    // The first one waits for the process to start.
    await roundTrip();
    const until = instant() + seconds * 1e3;
    for (let i = 0; i < most && instant() < until; i++) {
      await pause(pauseMs(i));
      times.push(await roundTrip());
    }
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
  return times;
}
