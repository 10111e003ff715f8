import { setTimeout as sleep } from "node:timers/promises";
import { AcquireTimeoutError, type Lease, type LeaseLostError, type Locks } from "holdfast";
import { EXIT, exitCodeOfSignal } from "../exit-codes.js";
import { connectPatiently } from "../input/connecting.js";
import { failureOf } from "../output/failure.js";
import { printable } from "../output/printable.js";
import { redact } from "../output/redact.js";
import { JsonReporter, type ReleaseReport, type Reporter } from "../output/reporter.js";
import { TextReporter } from "../output/text-reporter.js";
import { watchHolders } from "../output/watch-holders.js";
import { type CommandEnd, LockedCommand } from "../process/locked-command.js";
import { SignalProbe } from "../process/signal-probe.js";
import { type ForwardedSignal, Signals } from "../process/signals.js";
import { type RunRequest, readRunRequest, type TimedRequest, withTimes } from "./run-request.js";

// A working backend needs milliseconds. One that does not answer ends our grant by its ttl.
const CLOSING_MS = 1_000;
const SEEN_BY_NOBODY =
  "a lock of memory: is seen by nobody else, so nobody is kept out; sqlite: is shared by this host";

/** `holdfast run`: takes the arguments after the verb and returns the exit code. */
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
    // With --wait 0s --quiet the exit code is enough: cron would send a mail for every printed
    // line.
    if (!busy || !request.quiet || request.json) reporter.failed({ ...failure, message });
    return failure.exitCode;
  }
}

/** With --wait 0s nothing was waited for, so the message names holders and no waiting time. */
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
  // An engine may not allow the default ttl. So only a --ttl that was given is passed on here.
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
    // The grant may arrive together with the signal. It is then released unused.
    if (lease === null || interruptedBy !== null) {
      return exitCodeOfSignal(interruptedBy ?? "SIGINT");
    }
    if (locks.engine.name === "memory") reporter.warned(SEEN_BY_NOBODY);
    return await runChild(request, lease, signals, reporter);
  } finally {
    await closeSoon(locks, request, reporter);
  }
}

/** Releases what is held and withdraws what waits in the queue. */
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
  const child = new LockedCommand(request, lease);
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
  let ending: CommandEnd;
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

/** SIGKILL is sent early enough to take effect before another process can hold the lock. */
function timeToKill(remainingMs: number, graceMs: number): number {
  const marginMs = Math.min(250, remainingMs / 5);
  return Math.max(0, Math.min(graceMs, remainingMs - marginMs));
}

/**
 * A lock that is gone at the end was not held to the end. So the exit code is EXIT.lost, whatever
 * the command returned.
 */
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
    const message = `"${printable(resource)}" could not be released, ${ttl}: ${why}`;
    reporter.failed({ message, code: "ENGINE" });
    return "unknown" as const;
  };
  const released = lease
    .release()
    .catch((error: unknown) => notReleased(failureOf(error, request.url).message));
  // The command has ended, so a signal can only mean that the user does not want to wait for the
  // release.
  const interrupted = new Promise<"unknown">((resolve) => {
    signals.receive = (signal) => resolve(notReleased(`${signal} came first`));
  });
  const outcome: ReleaseReport["outcome"] = await Promise.race([released, interrupted]);
  const finalCode = outcome === "gone" ? EXIT.lost : exitCode;
  reporter.released({ resource, token, outcome, exitCode: finalCode });
  return finalCode;
}
