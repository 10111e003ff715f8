import type { Busy, Claim, Gone, Granted } from "../../../engine.js";
import { EngineError, limitMismatch } from "../../../errors.js";
import { type LockRecord, newGrant, sizeOf, withGrant } from "./lock-record.js";
import type { ObservedGrant } from "./observed-grants.js";
import type { Decision } from "./record-updates.js";
import { holderViews, livingGrant, type RecordView } from "./record-view.js";

/** A megabyte, less what renewals, revocations and tombstones may add to the record. */
const MOST_BYTES = 900_000;

/** The answer to a claim that was sent at `since`, and the record to write. */
export function decideClaim(
  claim: Claim,
  hash: string,
  view: RecordView,
  since: number,
): Decision<Granted | Busy | Gone> {
  const { record, grants } = view;
  if (record.tombstones.has(hash)) return [{ kind: "gone", why: "unknown" }, null];
  const own = livingGrant(view, hash);
  if (own?.grant.left) return [{ kind: "gone", why: "unknown" }, null];
  if (own?.grant.revoked) return [{ kind: "gone", why: "revoked" }, null];
  if (own !== null) {
    const grant = { ...own.grant, beat: own.grant.beat + 1 };
    const { tokens, ttlMs } = grant;
    const granted = { token: BigInt(grant.token), tokens, since, ttlMs };
    return [{ kind: "granted", ...granted }, withGrant(record, hash, grant)];
  }
  const other = grantWithOtherLimit(claim, grants);
  if (other !== null && !other.untimed) {
    throw limitMismatch(claim.resource, claim.limit, other.grant.limit);
  }
  if (other !== null || !fits(claim, grants) || Object.hasOwn(record.grants, hash)) {
    const retryAfterMs = Math.max(0, Math.min(...grants.map(({ blocksMs }) => blocksMs)));
    return [{ kind: "busy", holders: holderViews(grants), retryAfterMs }, null];
  }
  const { tokens, ttlMs } = claim;
  const token = view.takeToken();
  const next = withGrant(record, hash, newGrant(claim, token));
  refuseTooLarge(claim.resource, next);
  return [{ kind: "granted", token, tokens, since, ttlMs }, next];
}

/**
 * Called before anything is sent: a server that is sent too much closes the connection and says
 * nothing.
 */
function refuseTooLarge(resource: string, next: LockRecord): void {
  const bytes = sizeOf(next);
  if (bytes <= MOST_BYTES) return;
  const holders = Object.keys(next.grants).length;
  throw new EngineError(
    `the record of "${resource}" would take ${bytes} bytes with ${holders} holders, and ZooKeeper ` +
      "takes a megabyte (jute.maxbuffer): fewer holders, or shorter labels",
    { effect: "none", retryable: false },
  );
}

function fits({ mode, limit }: Claim, grants: readonly ObservedGrant[]): boolean {
  if (grants.length === 0) return true;
  if (mode === "exclusive" || grants.some(({ grant }) => grant.mode === "exclusive")) return false;
  return grants.length < (limit ?? Infinity);
}

/** A grant that is surely alive is preferred: only its limit is worth an error. */
function grantWithOtherLimit(
  { mode, limit }: Claim,
  grants: readonly ObservedGrant[],
): ObservedGrant | null {
  if (mode !== "shared") return null;
  const others = grants.filter(({ grant }) => grant.mode === "shared" && grant.limit !== limit);
  return others.find(({ untimed }) => !untimed) ?? others[0] ?? null;
}
