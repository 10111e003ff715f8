import type { Gone, HolderView } from "../../../engine.js";
import { type LockRecord, tokenInUse } from "./lock-record.js";
import type { ObservedGrant } from "./observed-grants.js";

/** A record at the moment of a decision, as this process judges it. */
export interface RecordView {
  /** Without the grants that are over. */
  readonly record: LockRecord;
  readonly grants: readonly ObservedGrant[];
  /**
   * For the one grant that may be written to this state. Greater than the tokens of all earlier
   * grants.
   */
  takeToken(): bigint;
}

/** The grant of this claim, if it lives. */
export function livingGrant({ grants }: RecordView, hash: string): ObservedGrant | null {
  return grants.find((one) => one.hash === hash && one.leftMs > 0) ?? null;
}

/** The living grant that this token belongs to. */
export function findGrant({ grants }: RecordView, token: bigint): ObservedGrant | null {
  const owns = ({ leftMs, grant }: ObservedGrant) => {
    const first = BigInt(grant.token);
    return leftMs > 0 && token >= first && token < first + BigInt(grant.tokens);
  };
  return grants.find(owns) ?? null;
}

/** The answer for a claim without a living grant. */
export function goneFrom({ grants }: RecordView): Gone {
  return { kind: "gone", why: grants.some(({ leftMs }) => leftMs > 0) ? "replaced" : "expired" };
}

export function holderViews(grants: readonly ObservedGrant[]): HolderView[] {
  const living = grants.filter(({ leftMs }) => leftMs > 0);
  return living.map(({ grant, leftMs }) => {
    const { mode, label, revoked } = grant;
    return { mode, token: tokenInUse(grant), label, remainingMs: leftMs, revoked };
  });
}
