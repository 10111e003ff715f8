import type { Busy, Failed, Gone, Granted, HolderView, Renewed } from "../../engine.js";
import { failed } from "../../engine-kit/settle-each.js";
import { otherTerms, overtaken, tooFew } from "./nodes/failure.js";
import type { NodeHolder } from "./nodes/node.js";
import type { AcquireOutcome, Quorum } from "./voting/quorum.js";
import type { RenewOutcome } from "./voting/renewal.js";

/**
 * What a vote on a claim means to the core. Throws where too few nodes counted, or where one has
 * another agreement than this client.
 */
export function acquireAnswer(
  quorum: Quorum,
  outcome: AcquireOutcome,
  resource: string,
  since: number,
  agreement: string,
): Granted | Busy | Gone {
  switch (outcome.kind) {
    case "granted": {
      const { fence, tokens, ttlMs } = outcome;
      return { kind: "granted", token: BigInt(fence), tokens, since, ttlMs };
    }
    case "busy": {
      const { holders, retryAfterMs, isRemembered: remembered } = outcome;
      return { kind: "busy", holders: holders.map(viewOf), retryAfterMs, remembered };
    }
    case "gone":
      return { kind: "gone", why: outcome.why };
    case "terms":
      throw otherTerms(quorum, outcome.node, outcome.terms, agreement);
    case "unanswered":
      throw tooFew(quorum, outcome, resource);
    case "overtaken":
      throw overtaken(resource);
  }
}

/** What a vote on a renewal means to the core. */
export function renewalAnswer(
  quorum: Quorum,
  outcome: RenewOutcome,
  resource: string,
  since: number,
  agreement: string,
): Renewed | Gone | Failed {
  switch (outcome.kind) {
    case "renewed":
      return { kind: "renewed", since, ttlMs: outcome.ttlMs };
    case "gone":
      return outcome;
    case "unanswered":
      return failed(tooFew(quorum, outcome, resource));
    case "terms": {
      const error = otherTerms(quorum, outcome.node, outcome.terms, agreement);
      return { kind: "failed", effect: "unknown", error };
    }
  }
}

function viewOf({ mode, fence, index, label, leftMs, revoked }: NodeHolder): HolderView {
  return {
    mode: mode === "s" ? "shared" : "exclusive",
    ...{ token: BigInt(fence + index), label, remainingMs: leftMs, revoked },
  };
}
