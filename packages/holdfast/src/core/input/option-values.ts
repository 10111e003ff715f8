import { show, UsageError } from "../../errors.js";

/** The error for a value that an option cannot have. */
export function wrong(name: string, got: unknown, wants: string): UsageError {
  return new UsageError(`${name} is ${show(got)}; it must be ${wants}`);
}

export function atLeast(
  name: string,
  value: unknown,
  least: number,
  most = Number.MAX_SAFE_INTEGER,
): number {
  if (typeof value === "number" && value >= least && value <= most) return value;
  const orEver = most === Infinity ? ", or Infinity" : "";
  throw wrong(name, value, `a number of ${least} or more${orEver}`);
}

export function whole(name: string, value: unknown, least: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= least) return value as number;
  throw wrong(name, value, `a whole number of ${least} or more`);
}

export function oneOf<T>(name: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value;
  throw wrong(name, value, allowed.map((a) => JSON.stringify(a)).join(" or "));
}

export function abortSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  if (
    typeof value === "object" &&
    value !== null &&
    "aborted" in value &&
    "addEventListener" in value
  ) {
    return value as AbortSignal;
  }
  throw wrong("signal", value, "an AbortSignal");
}
