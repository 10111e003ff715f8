import { connect, HoldfastError, type Lease, type LeaseLostError, type Locks } from "holdfast";
import { Child, type Ending } from "./child.js";
import type { Command } from "./command.js";
import { EXIT, exitCodeOf, exitCodeOfSignal, explain } from "./exit-codes.js";
import { JsonNarrator, type Narrator, type Released } from "./narrator.js";
import { RUN_HELP } from "./run-help.js";
import { type RunRequest, readRunRequest } from "./run-request.js";
import { withoutSecrets } from "./secrets.js";
import { type ForwardedSignal, Signals } from "./signals.js";
import { TextNarrator } from "./text-narrator.js";
import { watchHolders } from "./watch-holders.js";
import { Witness } from "./witness.js";

export const runCommand: Command = {
  summary: "run a command while holding a lock",
  help: RUN_HELP,
  run: async (args) => {
    const request = readRunRequest(args, process.env);
    const narrator = request.json
      ? new JsonNarrator()
      : new TextNarrator(request.acquire.label, request.quiet);
    try {
      return await runUnderLock(request, narrator);
    } catch (error) {
      const exitCode = exitCodeOf(error);
      const code = error instanceof HoldfastError ? error.code : "DEFECT";
      narrator.failed(withoutSecrets(explain(error), request.url), code, exitCode);
      return exitCode;
    }
  },
};

async function runUnderLock(request: RunRequest, narrator: Narrator): Promise<number> {
  const interrupt = new AbortController();
  let interruptedBy: ForwardedSignal | null = null;
  using signals = new Signals((signal) => {
    interruptedBy ??= signal;
    interrupt.abort();
  });
  const { ttlMs } = request.acquire;
  // An engine may keep nothing for as long as the default; --ttl says what is wanted instead.
  const defaults = ttlMs === undefined ? {} : { ttlMs };
  await using locks = await connect(request.url, { defaults });
  let lease: Lease | null = null;
  try {
    lease = await waitForLease(locks, request, narrator, interrupt.signal);
  } catch (error) {
    if (interruptedBy === null) throw error;
  }
  // The grant may have come in the same instant as the signal; then it goes back unused.
  if (lease === null || interruptedBy !== null) {
    await lease?.release();
    return exitCodeOfSignal(interruptedBy ?? "SIGINT");
  }
  // Awaited here, because the locks are closed, and the lease given back, when this block ends.
  return await runChild(request, lease, signals, narrator);
}

async function waitForLease(
  locks: Locks,
  request: RunRequest,
  narrator: Narrator,
  signal: AbortSignal,
): Promise<Lease> {
  const startedAt = performance.now();
  const stopWatching = watchHolders(locks, request.resource, startedAt, narrator);
  try {
    const lease = await locks.acquire(request.resource, { ...request.acquire, signal });
    narrator.acquired(lease, performance.now() - startedAt);
    return lease;
  } finally {
    stopWatching();
  }
}

async function runChild(
  request: RunRequest,
  lease: Lease,
  signals: Signals,
  narrator: Narrator,
): Promise<number> {
  const { graceMs } = request.acquire;
  const witness = new Witness();
  const child = new Child(request, lease);
  signals.receive = async (signal) => {
    if (!(await witness.saw(signal))) child.forward(signal);
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
    narrator.lost(first, killInMs);
    await child.stop(killInMs);
    await child.ended;
    ending = { exitCode: EXIT.lost };
  } else {
    ending = first;
  }
  await witness.dismiss();
  if (ending.failure !== undefined) narrator.failed(ending.failure, "COMMAND", ending.exitCode);
  return giveBack(lease, ending.exitCode, request, narrator);
}

/** SIGKILL comes early enough for the kernel to act on it while nobody else can hold the lock. */
function timeToKill(remainingMs: number, graceMs: number): number {
  const marginMs = Math.min(250, remainingMs / 5);
  return Math.max(0, Math.min(graceMs, remainingMs - marginMs));
}

/** A lock that is gone at the end was not held to the end, whatever the command itself returned. */
async function giveBack(
  lease: Lease,
  exitCode: number,
  request: RunRequest,
  narrator: Narrator,
): Promise<number> {
  const { resource, token } = lease;
  let outcome: Released["outcome"] = "unknown";
  try {
    outcome = await lease.release();
  } catch (error) {
    const ttl = `it frees itself within ${request.acquire.ttlMs} ms`;
    const why = withoutSecrets(explain(error), request.url);
    narrator.failed(`"${resource}" could not be given back, ${ttl}: ${why}`, "ENGINE");
  }
  const finalCode = outcome === "gone" ? EXIT.lost : exitCode;
  narrator.released({ resource, token, outcome, exitCode: finalCode });
  return finalCode;
}
