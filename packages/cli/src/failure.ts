import { HoldfastError } from "holdfast";
import { exitCodeOf, explain } from "./exit-codes.js";
import { jsonLine } from "./printable.js";
import { withoutSecrets } from "./secrets.js";

export interface Failure {
  readonly message: string;
  readonly code: string;
  readonly exitCode: number;
}

/** What ended us, without the secrets of the URL. */
export function failureOf(error: unknown, url = ""): Failure {
  const code = error instanceof HoldfastError ? error.code : "DEFECT";
  return { message: withoutSecrets(explain(error), url), code, exitCode: exitCodeOf(error) };
}

/** Says it on stderr and gives the exit code. */
export function tellFailure({ message, code, exitCode }: Failure, json: boolean): number {
  const event = { event: "failed", code, message, exitCode };
  process.stderr.write(json ? jsonLine(event) : `holdfast: ${message}\n`);
  return exitCode;
}
