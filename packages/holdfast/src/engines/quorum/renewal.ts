import type { Gone } from "../../engine.js";
import { canvass } from "./canvass.js";
import type { NodeAnswer } from "./node.js";
import type { Entry, Quorum, Unanswered } from "./quorum.js";

export type RenewOutcome =
  | { readonly kind: "renewed" }
  | { readonly kind: "gone"; readonly why: Gone["why"] }
  | { readonly kind: "terms"; readonly node: number; readonly terms: string }
  | Unanswered;

/**
 * Renews one grant where it stands. Enough nodes must have it still; where one of the others does not,
 * it is asked to join the grant afterwards, and counts from the next renewal on.
 */
export function renewGrant(
  quorum: Quorum,
  entry: Entry | undefined,
  ref: { readonly resource: string; readonly id: string; readonly ttlMs: number },
  done: (outcome: RenewOutcome) => void,
): void {
  const { size, terms } = quorum;
  const answers: (NodeAnswer | null)[] = new Array(size).fill(null);
  let renewed = 0;
  let gone = 0;
  let why: Gone["why"] = "expired";
  let other: RenewOutcome | null = null;
  const rejoin = (node: number, answer: NodeAnswer) => {
    if (answer.kind !== "gone" || answer.why === "revoked" || renewed < terms.writeQuorum) return;
    if (entry?.granted && !entry.isOver) join(quorum, entry, node, ref.ttlMs);
  };
  const request = { verb: "renew", resource: ref.resource, id: ref.id, ttlMs: ref.ttlMs } as const;
  canvass(quorum, {
    request: () => request,
    patienceMs: quorum.patienceMs(ref.ttlMs),
    heard: (node, answer) => {
      answers[node] = answer;
      if (answer.kind === "renewed") renewed++;
      else if (answer.kind === "terms") other = { kind: "terms", node, terms: answer.terms };
      else if (answer.kind === "gone") {
        gone++;
        if (answer.why === "revoked") other = { kind: "gone", why: "revoked" };
        else if (answer.why !== "expired") why = answer.why;
      }
      return other !== null || renewed >= terms.writeQuorum || gone > size - terms.writeQuorum;
    },
    ended: () => {
      if (other !== null) done(other);
      else if (renewed >= terms.writeQuorum) done({ kind: "renewed" });
      else if (gone > size - terms.writeQuorum) done({ kind: "gone", why });
      else done({ kind: "unanswered", effect: "unknown", absent: absentees(answers) });
      for (const [node, answer] of answers.entries()) if (answer !== null) rejoin(node, answer);
    },
    late: rejoin,
  });
}

/**
 * A node accepts a fence only while its counter is lower, and while the record stands nobody else is
 * accepted there. So whoever has the record on W nodes at once knows that no greater fence was
 * granted, whether a node took it at first or joined later.
 */
function join(quorum: Quorum, entry: Entry, node: number, ttlMs: number): void {
  const { claim, attempt, fence, tokens } = entry;
  if (entry.unanswered[node]! > 0) return;
  entry.unanswered[node]!++;
  const { resource, id, mode, delayMs, label } = claim;
  const what = { resource, id, attempt, mode, ttlMs, delayMs, fence, tokens, label } as const;
  quorum.ask(node, { verb: "acquire", ...what, rejoin: true, wants: false }, (answer) => {
    if (answer.kind !== "failed" || answer.effect === "none") entry.unanswered[node]!--;
  });
}

/** The nodes whose word does not count, and what they said instead. */
export function absentees(answers: readonly (NodeAnswer | null)[]): Unanswered["absent"] {
  return answers.flatMap((answer, node) => {
    const seen = answer ?? "late";
    const counts = seen !== "late" && seen.kind !== "failed" && seen.kind !== "uncertified";
    return counts ? [] : [{ node, answer: seen }];
  });
}
