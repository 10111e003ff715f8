import { constants } from "node:os";
import { type ErrorCode, HoldfastError } from "holdfast";
import { printable } from "./output/printable.js";

/** The codes of sysexits.h, where it has one. 126, 127 and 128 + n are the shell's. */
export const EXIT = { ok: 0, refused: 69, lost: 76, notExecutable: 126, notFound: 127 } as const;

const SOFTWARE = 70;
const BY_CODE: Readonly<Record<ErrorCode, number>> = {
  USAGE: 64,
  UNSUPPORTED: 78,
  MISSING_PEER: 78,
  CLOSED: 75,
  ACQUIRE_TIMEOUT: 75,
  LEASE_LOST: EXIT.lost,
  FENCED_OUT: 76,
  ENGINE: EXIT.refused,
  CONTRACT: SOFTWARE,
};

export function exitCodeOf(error: unknown): number {
  return error instanceof HoldfastError ? BY_CODE[error.code] : SOFTWARE;
}

/** Shells report a command that a signal ended as 128 plus the number of the signal. */
export function exitCodeOfSignal(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/** The library speaks of ttlMs where the command line has --ttl. */
const OPTION_OF: Readonly<Record<string, string>> = {
  ttlMs: "--ttl",
  waitMs: "--wait",
  graceMs: "--grace",
  lockDelayMs: "--lock-delay",
};

/** An error as a sentence for the person at the keyboard. A defect of ours comes with its stack. */
export function explain(error: unknown): string {
  if (!(error instanceof HoldfastError)) {
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return `this is a defect, please report it: ${stack.split("\n").map(printable).join("\n")}`;
  }
  const message = printable(error.message);
  if (error.code !== "USAGE") return message;
  const named = message.replace(/\b\w+Ms\b/g, (name) => OPTION_OF[name] ?? name);
  return named === message ? named : `${named} (in milliseconds)`;
}
