import { refusal } from "../failure.js";
import { CODES, failedPart, isSessionError, vouch } from "../wire/operations.js";
import type { Session } from "../wire/session.js";

/** A majority agrees that the session lives, and we have heard of all that happened before. */
export async function prove(session: Session, path: string, until: number): Promise<void> {
  const { err, value } = await session.ask(vouch(path), until);
  // Whether the path is there, or may be read, says nothing about the session.
  const failed = err === CODES.ok ? failedPart(value ?? []) : { err };
  if (err !== CODES.ok || isSessionError(failed?.err)) throw refusal(failed!.err);
}
