import { EngineError, type FailureReason, HoldfastError } from "holdfast";
import { exitCodeOf, explain } from "../exit-codes.js";
import { jsonLine } from "./printable.js";
import { redact } from "./redact.js";

export interface ReportedFailure {
  readonly message: string;
  readonly code: string;
  /** For an engine's failure: the kind of remedy that it needs. */
  readonly reason?: FailureReason;
  readonly exitCode: number;
}

/** The error that ends the run, without the secrets of the URL. */
export function failureOf(error: unknown, url = ""): ReportedFailure {
  const code = error instanceof HoldfastError ? error.code : "DEFECT";
  const reason = error instanceof EngineError ? { reason: error.reason } : {};
  const message = redact(explain(error), url);
  return { message, code, ...reason, exitCode: exitCodeOf(error) };
}

/** Writes the failure to stderr and returns its exit code. */
export function tellFailure(failure: ReportedFailure, json: boolean): number {
  const { message, code, reason, exitCode } = failure;
  const event = { event: "failed", code, reason, message, exitCode };
  process.stderr.write(json ? jsonLine(event) : `holdfast: ${message}\n`);
  return exitCode;
}
