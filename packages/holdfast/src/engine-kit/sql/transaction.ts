import { checkResource } from "../../core/acquiring/resource.js";
import type { Sequence } from "../../engine.js";
import { EngineError, FencedOutError, UsageError } from "../../errors.js";
import { formatSequencer } from "../../fencing/sequencer.js";
import { token as readToken } from "./shape.js";

/** Valid until the transaction ends. */
export interface TransactionClaim {
  readonly resource: string;
  readonly token: bigint;
  readonly sequencer: string;
}

export function checkClaimHere(resource: string, waitMs: number): void {
  checkResource(resource);
  if (Number.isSafeInteger(waitMs) && waitMs >= 1) return;
  throw new UsageError(`waitMs is ${waitMs}; it must be a whole number of 1 or more`);
}

/** answer: the token that the database gave, or null if the resource was busy. */
export function claimedHere(resource: string, answer: unknown): TransactionClaim | null {
  if (answer === null) return null;
  // A number, or text if it is too large for one.
  const token = readToken(String(answer));
  return { resource, token, sequencer: formatSequencer({ resource, mode: "exclusive", token }) };
}

/** where: the schema or tables that were checked. A token does not say which engine gave it. */
export function fencedOut({ resource, token }: Sequence, where: string): FencedOutError {
  return new FencedOutError(
    `no live grant of ${where} has token ${token} of "${resource}": the grant has ended, or the lock is ` +
      "kept elsewhere; docs/fencing.md of the package holdfast says how its token is checked then",
    { resource },
  );
}

/** where: the schema or tables that are missing where the transaction runs. */
export function notHere(where: string, cause: unknown): EngineError {
  return new EngineError(
    `this database has no ${where}: the locks are in another database, or under another name, or init has ` +
      "not run; for a lock elsewhere, docs/fencing.md of the package holdfast says how its token is checked",
    { effect: "none", retryable: false, reason: "not-prepared", cause },
  );
}

/** ShedLock's own clients do not see what a transaction has not committed. */
export const NOT_FOR_SHEDLOCK =
  "these tables were made for ShedLock, whose clients know of no claim or fence in a transaction; use Holdfast's own tables";

/** Outside a transaction the lock would end with its own statement, and protect nothing. */
export function noTransaction(begin: string): UsageError {
  return new UsageError(`this needs a transaction: send ${begin} on this connection first`);
}
