import { type Known, refuseUnknown } from "../../core/input/known-options.js";
import { redactedCause } from "../../engine-kit/sql/redacted-cause.js";
import { oneOf, onlyAnswer } from "../../engine-kit/sql/shape.js";
import {
  checkClaimHere,
  claimedHere,
  fencedOut,
  NOT_FOR_SHEDLOCK,
  noTransaction,
  notHere,
  type TransactionClaim,
} from "../../engine-kit/sql/transaction.js";
import { EngineError, UsageError } from "../../errors.js";
import { parseSequencer } from "../../fencing/sequencer.js";
import { checkSession, POSTGRES_DEFAULTS, resolvePostgres } from "./options.js";
import { isPool, type PgClient, type PgPool } from "./sessions/client.js";
import { failureOf, isMissing } from "./sessions/failure.js";

export interface TransactionOptions {
  /** The schema in which init() created the tables. */
  readonly schema?: string;
}

export interface ClaimHereOptions extends TransactionOptions {
  /** How long to wait for another transaction that has locked the resource. */
  readonly waitMs?: number;
}

export type { TransactionClaim };

const FENCE: Known<TransactionOptions> = { schema: true };
const CLAIM: Known<ClaimHereOptions> = { ...FENCE, waitMs: true };

/** Holdfast's own SQLSTATEs, raised when the caller's transaction is unsuitable. */
const REFUSALS: Readonly<Record<string, string>> = {
  HF002:
    "fenceInTransaction needs READ COMMITTED: a transaction with a snapshot sees an outdated grant",
  HF003: NOT_FOR_SHEDLOCK,
};

/**
 * Inside the caller's transaction: throws FencedOutError unless this sequencer's grant is alive.
 * Until the transaction ends nobody can succeed the grant, even if its ttl ends meanwhile. So what
 * is written together with this check is written by the holder. Renewals continue. Release the
 * lease after the commit, not before. The transaction must be READ COMMITTED, which is
 * PostgreSQL's default.
 */
export async function fenceInTransaction(
  client: PgClient,
  sequencer: string,
  options: TransactionOptions = {},
): Promise<void> {
  refuseUnknown(options, FENCE, "fenceInTransaction");
  const { schema = POSTGRES_DEFAULTS.schema } = options;
  const sequence = parseSequencer(sequencer);
  const values = [sequence.resource, sequence.mode === "shared", String(sequence.token)];
  const isGood = oneOf(await ask(client, schema, "fence($1, $2, $3)", values), true, false);
  if (!isGood) throw fencedOut(sequence, `schema "${schema}"`);
}

/**
 * Takes the resource until the caller's transaction ends: lock and data commit together, or
 * neither does. Null if somebody holds the resource, waits for it, or has locked it in another
 * transaction. Others get the answer busy, so keep such transactions short.
 */
export async function claimInTransaction(
  client: PgClient,
  resource: string,
  options: ClaimHereOptions = {},
): Promise<TransactionClaim | null> {
  refuseUnknown(options, CLAIM, "claimInTransaction");
  const { schema = POSTGRES_DEFAULTS.schema, waitMs = 1_000 } = options;
  checkClaimHere(resource, waitMs);
  return claimedHere(resource, await ask(client, schema, "claim_here($1, $2)", [resource, waitMs]));
}

async function ask(client: PgClient | PgPool, schema: string, routine: string, values: unknown[]) {
  resolvePostgres({ schema });
  checkSession(client);
  if (isPool(client)) {
    throw new UsageError("a pool has no transaction; give the client on which you sent BEGIN");
  }
  try {
    // PostgreSQL refuses this outside a transaction, where the lock would end with its own
    // statement.
    await client.query("SAVEPOINT holdfast");
    const { rows } = await client.query(`SELECT "${schema}".${routine} AS answer`, values);
    await client.query("RELEASE SAVEPOINT holdfast");
    return onlyAnswer(rows);
  } catch (error) {
    if ((error as { code?: string }).code === "25P01") {
      throw noTransaction("BEGIN");
    }
    const refusal = REFUSALS[(error as { code?: string }).code ?? ""];
    if (refusal !== undefined) throw new UsageError(refusal);
    if (isMissing(error)) {
      throw notHere(`schema "${schema}" with tables for locks`, redactedCause(error));
    }
    const failure = failureOf(error).error;
    // The failed statement has aborted the caller's transaction; the caller rolls it back.
    throw failure instanceof EngineError ? failure : error;
  }
}
