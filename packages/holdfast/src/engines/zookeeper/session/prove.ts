import { refusal } from "../failure.js";
import { CODES, isSessionError } from "../wire/codes.js";
import { failedPart, noop } from "../wire/multi.js";
import type { Session } from "../wire/session.js";

/**
 * Proves that a majority agrees that the session lives, and that we have seen all earlier changes.
 */
export async function prove(session: Session, path: string, until: number): Promise<void> {
  const { err, value } = await session.ask(noop(path), until);
  // A missing or unreadable path says nothing about the session.
  const failed = err === CODES.ok ? failedPart(value ?? []) : { err };
  if (err !== CODES.ok || isSessionError(failed?.err)) throw refusal(failed!.err);
}
