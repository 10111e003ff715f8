import type { Call, Gone, Renewed, RenewRef } from "../../../engine.js";
import { hashOf } from "../paths.js";
import { withGrant } from "./lock-record.js";
import type { Decision } from "./record-updates.js";
import { goneFrom, livingGrant, type RecordView } from "./record-view.js";

/** The answer to a renewal, and the record to write. */
export function decideRenewal(
  { grantId, ttlMs, index = 0, leave = false }: RenewRef,
  view: RecordView,
  { startedAt: since, order }: Call,
): Decision<Renewed | Gone> {
  const hash = hashOf(grantId);
  const own = livingGrant(view, hash);
  if (own === null) return [goneFrom(view), null];
  const { grant } = own;
  if (grant.left && !leave) return [{ kind: "gone", why: "expired" }, null];
  const isNext = index > grant.index;
  if (grant.revoked && !isNext) return [{ kind: "gone", why: "revoked" }, null];
  // A later renewal has already taken effect, so this one changes nothing.
  if (order < grant.order) return [{ kind: "renewed", since, ttlMs: own.sureMs }, null];
  const { leftAt: _, ...rest } = grant;
  const next = { ...rest, ttlMs, beat: grant.beat + 1, order, left: leave };
  // A revocation was for a holder that has passed its lease on.
  const passedOn = isNext ? { index, revoked: false } : {};
  return [
    { kind: "renewed", since, ttlMs },
    withGrant(view.record, hash, { ...next, ...passedOn }),
  ];
}
