import type { Gone } from "../../../engine.js";
import type { NodeAnswer } from "../nodes/node.js";
import { broadcast } from "./broadcast.js";
import type { Entry } from "./entry.js";
import { Joining } from "./joining.js";
import type { Quorum, Unanswered } from "./quorum.js";
import { NOT_COUNTED } from "./tally.js";

export type RenewOutcome =
  | { readonly kind: "renewed"; readonly ttlMs: number }
  | { readonly kind: "gone"; readonly why: Gone["why"] }
  | { readonly kind: "terms"; readonly node: number; readonly terms: string }
  | Unanswered;

/** When a bid keeps the grant from joining a node, this many more renewals follow at once. */
const MOST_CONFIRMATIONS = 2;

export interface RenewParams {
  readonly resource: string;
  readonly id: string;
  readonly ttlMs: number;
  readonly order: number;
  readonly index: number;
  readonly leave: boolean;
}

/**
 * Renews one grant. Enough nodes must still have it. A node that no longer has it is asked to accept the
 * grant again afterwards, and counts from the next renewal on.
 */
export function renewGrant(
  quorum: Quorum,
  entry: Entry | undefined,
  params: RenewParams,
  done: (outcome: RenewOutcome) => void,
  confirmations = MOST_CONFIRMATIONS,
): void {
  const { size, terms } = quorum;
  const answers: (NodeAnswer | null)[] = new Array(size).fill(null);
  let renewed = 0;
  let leftMs = params.ttlMs;
  let gone = 0;
  let why: Gone["why"] = "expired";
  let other: RenewOutcome | null = null;
  let foreign = 0;
  // Counters heard before this request: if it succeeds, the grant lived when they were heard.
  const heard = entry === undefined ? [] : [...entry.counters];
  if (entry !== undefined) entry.lastOrder = Math.max(entry.lastOrder, params.order);
  let isConfirmed = false;
  const confirm = () => {
    if (isConfirmed || confirmations === 0 || entry?.isOver || entry?.lastOrder !== params.order)
      return;
    isConfirmed = true;
    renewGrant(quorum, entry, params, () => {}, confirmations - 1);
  };
  const rejoin = (node: number, answer: NodeAnswer) => {
    if (answer.kind !== "gone" || answer.why === "revoked" || renewed < terms.writeQuorum) return;
    // A later renewal may ask for less time, or leave the grant behind.
    if (params.leave || entry?.lastOrder !== params.order) return;
    if (entry.granted) new Joining(quorum, entry, node, params, heard[node] ?? 0, confirm).ask();
  };
  const request = { verb: "renew", ...params } as const;
  broadcast(quorum, {
    request: () => request,
    patienceMs: quorum.patienceMs(params.ttlMs),
    heard: (node, answer) => {
      answers[node] = answer;
      if (answer.kind === "renewed") {
        renewed++;
        leftMs = Math.min(leftMs, answer.leftMs);
      } else if (answer.kind === "terms") {
        if (++foreign > size - terms.writeQuorum) {
          other = { kind: "terms", node, terms: answer.terms };
        }
      } else if (answer.kind === "gone") {
        gone++;
        if (answer.why === "revoked") other = { kind: "gone", why: "revoked" };
        else if (answer.why !== "expired") why = answer.why;
      }
      return other !== null || renewed >= terms.writeQuorum || gone > size - terms.writeQuorum;
    },
    ended: () => {
      if (other !== null) done(other);
      else if (renewed >= terms.writeQuorum) done({ kind: "renewed", ttlMs: leftMs });
      else if (gone > size - terms.writeQuorum) done({ kind: "gone", why });
      else done({ kind: "unanswered", effect: "unknown", absent: absentees(answers) });
      for (const [node, answer] of answers.entries()) if (answer !== null) rejoin(node, answer);
    },
    late: rejoin,
  });
}

/** The nodes that do not count, and what each of them answered. */
export function absentees(answers: readonly (NodeAnswer | null)[]): Unanswered["absent"] {
  return answers.flatMap((answer, node) => {
    const seen = answer ?? "late";
    const counts = seen !== "late" && !NOT_COUNTED.has(seen.kind);
    return counts ? [] : [{ node, answer: seen }];
  });
}
