import { EngineError, type FailureReason, HoldfastError } from "holdfast";
import { exitCodeOf, explain } from "../exit-codes.js";
import { jsonLine } from "./printable.js";
import { redact } from "./redact.js";

export interface Failure {
  readonly message: string;
  readonly code: string;
  /** Of an engine's failure: what somebody has to do about it. */
  readonly reason?: FailureReason;
  readonly exitCode: number;
}

/** What ended us, without the secrets of the URL. */
export function failureOf(error: unknown, url = ""): Failure {
  const code = error instanceof HoldfastError ? error.code : "DEFECT";
  const reason = error instanceof EngineError ? { reason: error.reason } : {};
  const message = redact(explain(error), url);
  return { message, code, ...reason, exitCode: exitCodeOf(error) };
}

/** Says it on stderr and gives the exit code. */
export function tellFailure(failure: Failure, json: boolean): number {
  const { message, code, reason, exitCode } = failure;
  const event = { event: "failed", code, reason, message, exitCode };
  process.stderr.write(json ? jsonLine(event) : `holdfast: ${message}\n`);
  return exitCode;
}
