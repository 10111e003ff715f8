import { spawn } from "node:child_process";
import { once } from "node:events";
import { instant, pause, within } from "./instant.js";

const ECHO = "process.stdin.pipe(process.stdout)";
const ANSWER_TIMEOUT_MS = 5_000;

export interface Pace {
  readonly seconds: number;
  /** Not counted. */
  readonly warmUpMs: number;
  readonly most: number;
  /** A machine that never sleeps answers faster than one that has to wake up. */
  pauseMs(i: number): number;
}

/** How long each of many round trips took. */
export async function sampleRoundTrips(
  roundTrip: () => Promise<unknown>,
  { seconds, warmUpMs, most, pauseMs }: Pace,
): Promise<number[]> {
  const times: number[] = [];
  // The first one may have to wait for something to start.
  await within(ANSWER_TIMEOUT_MS, "a round trip", roundTrip());
  const warmAt = instant() + warmUpMs;
  const until = warmAt + seconds * 1e3;
  for (let i = 0; i < most && instant() < until; i++) {
    await pause(pauseMs(i));
    const startedAt = instant();
    await within(ANSWER_TIMEOUT_MS, "a round trip", roundTrip());
    if (startedAt >= warmAt) times.push(instant() - startedAt);
  }
  return times;
}

/** One byte to another process and back, which is the least that two processes need to agree. */
export async function samplePipe(pace: Pace): Promise<number[]> {
  const child = spawn(process.execPath, ["-e", ECHO], { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  try {
    return await sampleRoundTrips(async () => {
      const back = once(child.stdout, "data");
      child.stdin.write("x");
      await back;
    }, pace);
  } finally {
    child.kill("SIGKILL");
    await closed;
  }
}
