import { setTimeout as sleep } from "node:timers/promises";
import { AcquireTimeoutError, type Lease, type LeaseLostError, type Locks } from "holdfast";
import { EXIT, exitCodeOfSignal } from "../exit-codes.js";
import { connectPatiently } from "../input/connecting.js";
import { failureOf } from "../output/failure.js";
import { printable } from "../output/printable.js";
import { redact } from "../output/redact.js";
import { JsonReporter, type Released, type Reporter } from "../output/reporter.js";
import { TextReporter } from "../output/text-reporter.js";
import { watchHolders } from "../output/watch-holders.js";
import { Child, type Ending } from "../process/child.js";
import { SignalProbe } from "../process/signal-probe.js";
import { type ForwardedSignal, Signals } from "../process/signals.js";
import { type RunRequest, readRunRequest, type TimedRequest, withTimes } from "./run-request.js";

// A backend that answers needs milliseconds. One that does not will find out by itself that we left.
const CLOSING_MS = 1_000;
const SEEN_BY_NOBODY =
  "a lock of memory: is seen by nobody else, so nobody is kept out; sqlite: is shared by this host";

/** `holdfast run`: gets what follows the verb, gives the exit code. */
export async function run(args: readonly string[]): Promise<number> {
  const request = readRunRequest(args, process.env);
  const reporter = request.json
    ? new JsonReporter()
    : new TextReporter(request.acquire.label, request.quiet);
  try {
    return await runUnderLock(request, reporter);
  } catch (error) {
    const failure = failureOf(error, request.url);
    const busy = error instanceof AcquireTimeoutError && request.acquire.waitMs === 0;
    const message = busy ? holdersOf(error, request.resource) : failure.message;
    // Whoever asks once and wants no word has the exit code: cron would send a mail for every such turn.
    if (!busy || !request.quiet || request.json) reporter.failed({ ...failure, message });
    return failure.exitCode;
  }
}

/** Nothing was waited for, so how long that took is nobody's concern. */
function holdersOf({ holders }: AcquireTimeoutError, resource: string): string {
  const who = holders.map(({ label, token }) => `${label} (token ${token})`).join(", ");
  return printable(`"${resource}" ${who === "" ? "is not free" : `is held by ${who}`}`);
}

async function runUnderLock(asked: RunRequest, reporter: Reporter): Promise<number> {
  const interrupt = new AbortController();
  let interruptedBy: ForwardedSignal | null = null;
  using signals = new Signals((signal) => {
    interruptedBy ??= signal;
    interrupt.abort();
  });
  const { ttlMs, waitMs = Infinity } = asked.acquire;
  // An engine may keep nothing for as long as the default; --ttl says what is wanted instead.
  const defaults = ttlMs === undefined ? {} : { ttlMs };
  const locks = await connectPatiently(
    asked.url,
    { defaults },
    {
      ...{ waitMs, signal: interrupt.signal },
      onFailure: (why) => {
        reporter.warned(redact(`${printable(why)}; trying again`, asked.url));
      },
    },
  );
  if (locks === null) return exitCodeOfSignal(interruptedBy ?? "SIGINT");
  const request = withTimes(asked, locks.engine.traits.ttl.maxMs);
  try {
    let lease: Lease | null = null;
    try {
      lease = await waitForLease(locks, request, reporter, interrupt.signal);
    } catch (error) {
      if (interruptedBy === null) throw error;
    }
    // The grant may have come in the same instant as the signal; then it goes back unused.
    if (lease === null || interruptedBy !== null) {
      return exitCodeOfSignal(interruptedBy ?? "SIGINT");
    }
    if (locks.engine.name === "memory") reporter.warned(SEEN_BY_NOBODY);
    return await runChild(request, lease, signals, reporter);
  } finally {
    await closeSoon(locks, request, reporter);
  }
}

/** Gives back what is held, and withdraws what waits from the queue. */
async function closeSoon(locks: Locks, request: RunRequest, reporter: Reporter): Promise<void> {
  const closing = locks.close().catch((error: unknown) => {
    const { exitCode: _, ...failure } = failureOf(error, request.url);
    reporter.failed(failure);
  });
  await Promise.race([closing, sleep(CLOSING_MS)]);
}

async function waitForLease(
  locks: Locks,
  request: RunRequest,
  reporter: Reporter,
  signal: AbortSignal,
): Promise<Lease> {
  const startedAt = performance.now();
  const stopWatching = watchHolders(locks, request.resource, startedAt, reporter);
  try {
    const lease = await locks.acquire(request.resource, { ...request.acquire, signal });
    reporter.acquired(lease, performance.now() - startedAt);
    return lease;
  } finally {
    stopWatching();
  }
}

async function runChild(
  request: TimedRequest,
  lease: Lease,
  signals: Signals,
  reporter: Reporter,
): Promise<number> {
  const { graceMs } = request.acquire;
  const probe = new SignalProbe();
  const child = new Child(request, lease);
  signals.receive = async (signal) => {
    if (!(await probe.received(signal))) child.forward(signal);
  };
  const lost = new Promise<LeaseLostError>((resolve) => {
    const { signal } = lease;
    const onLost = () => resolve(signal.reason as LeaseLostError);
    if (signal.aborted) onLost();
    else signal.addEventListener("abort", onLost, { once: true });
  });
  const first = await Promise.race([child.ended, lost]);
  let ending: Ending;
  if (first instanceof Error) {
    const killInMs = timeToKill(first.remainingMs, graceMs);
    reporter.lost(first, killInMs);
    await child.stop(killInMs);
    await child.ended;
    ending = { exitCode: EXIT.lost };
  } else {
    ending = first;
  }
  await probe.stop();
  if (ending.failure !== undefined) {
    reporter.failed({ message: ending.failure, code: "COMMAND", exitCode: ending.exitCode });
  }
  return releaseLease(lease, ending.exitCode, request, signals, reporter);
}

/** SIGKILL comes early enough for the kernel to act on it while nobody else can hold the lock. */
function timeToKill(remainingMs: number, graceMs: number): number {
  const marginMs = Math.min(250, remainingMs / 5);
  return Math.max(0, Math.min(graceMs, remainingMs - marginMs));
}

/** A lock that is gone at the end was not held to the end, whatever the command itself returned. */
async function releaseLease(
  lease: Lease,
  exitCode: number,
  request: TimedRequest,
  signals: Signals,
  reporter: Reporter,
): Promise<number> {
  const { resource, token } = lease;
  const notReleased = (why: string) => {
    const ttl = `it frees itself within ${request.acquire.ttlMs} ms`;
    const message = `"${printable(resource)}" could not be given back, ${ttl}: ${why}`;
    reporter.failed({ message, code: "ENGINE" });
    return "unknown" as const;
  };
  const released = lease
    .release()
    .catch((error: unknown) => notReleased(failureOf(error, request.url).message));
  // Its command has ended, so a signal can only mean that somebody does not want to wait for this.
  const interrupted = new Promise<"unknown">((resolve) => {
    signals.receive = (signal) => resolve(notReleased(`${signal} came first`));
  });
  const outcome: Released["outcome"] = await Promise.race([released, interrupted]);
  const finalCode = outcome === "gone" ? EXIT.lost : exitCode;
  reporter.released({ resource, token, outcome, exitCode: finalCode });
  return finalCode;
}
