import type { HolderView, Lease, LeaseLostError, ResourceView } from "holdfast";
import type { ReportedFailure } from "./failure.js";
import { jsonLine } from "./printable.js";

/** Tells on stderr what happens around the command. Stdout belongs to the command alone. */
export interface Reporter {
  waiting(view: ResourceView, waitedMs: number): void;
  acquired(lease: Lease, waitedMs: number): void;
  lost(error: LeaseLostError, killInMs: number): void;
  released(end: ReleaseReport): void;
  /** Something works, but probably not as the user meant it. */
  warned(message: string): void;
  /** A failure. One with an exit code ends the run. */
  failed(failure: Partial<ReportedFailure> & Pick<ReportedFailure, "message" | "code">): void;
}

export interface ReleaseReport {
  readonly resource: string;
  readonly token: bigint;
  readonly outcome: "released" | "gone" | "unknown";
  readonly exitCode: number;
}

/**
 * One JSON object a line. Tokens are decimal strings, because JSON's numbers are exact to 53 bits
 * only.
 */
export class JsonReporter implements Reporter {
  #lastHolders = "";

  waiting(view: ResourceView, waitedMs: number): void {
    const holders = view.holders.map(plain);
    const identity = view.holders.map(({ token }) => token).join();
    // Events report changes. That one more second went by is not a change.
    if (identity === this.#lastHolders) return;
    this.#lastHolders = identity;
    const { resource, closedMs } = view;
    this.#emit({ event: "waiting", resource, holders, closedMs, waitedMs: Math.round(waitedMs) });
  }

  acquired(lease: Lease, waitedMs: number): void {
    const { resource, mode, sequencer } = lease;
    const token = String(lease.token);
    const waited = Math.round(waitedMs);
    this.#emit({ event: "acquired", resource, mode, token, sequencer, waitedMs: waited });
  }

  lost(error: LeaseLostError, killInMs: number): void {
    const { resource, reason, message } = error;
    const token = String(error.token);
    this.#emit({ event: "lost", resource, token, reason, message, killInMs: Math.round(killInMs) });
  }

  released({ resource, token, outcome, exitCode }: ReleaseReport): void {
    this.#emit({ event: "released", resource, token: String(token), outcome, exitCode });
  }

  warned(message: string): void {
    this.#emit({ event: "warned", message });
  }

  failed({ message, code, reason, exitCode }: Partial<ReportedFailure>): void {
    this.#emit({ event: "failed", code, reason, message, exitCode });
  }

  #emit(event: Readonly<Record<string, unknown>>): void {
    process.stderr.write(jsonLine(event));
  }
}

function plain({ label, token, mode, remainingMs }: HolderView) {
  return { label, token: String(token), mode, remainingMs: Math.round(remainingMs) };
}
