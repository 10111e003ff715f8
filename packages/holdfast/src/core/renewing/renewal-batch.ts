import type { Failed, Gone, Renewed, RenewRef } from "../../engine.js";
import type { Grant } from "../holding/grant.js";
import type { RenewalGroup } from "./renewal-group.js";

export type RenewalAnswer = Renewed | Gone | Failed;

/** The backend's answer for one group. Only a group of one can be gone. */
export interface RenewalOutcome {
  readonly group: RenewalGroup;
  readonly answer: RenewalAnswer;
  /** The index of the token that was in use when the renewal was sent. */
  readonly index: number;
}

/** Groups that one call renews, with the grants that they had when it was made. */
export class RenewalBatch {
  readonly refs: readonly RenewRef[];
  readonly #groups: readonly RenewalGroup[];
  readonly #grants: readonly (readonly Grant[])[];

  constructor(groups: readonly RenewalGroup[]) {
    this.#groups = groups;
    this.#grants = groups.map(({ grants }) => grants);
    this.refs = groups.length === 1 ? groups[0]!.refs : groups.flatMap(({ refs }) => refs);
  }

  /**
   * Called when the batch is sent, which may be a turn of the event loop later. A grant that has
   * left its group by then needs nothing: it is renewed for the ttl that was confirmed.
   */
  expect(startedAt: number): void {
    for (const group of this.#groups) group.expect(startedAt, group.ttlMs);
  }

  /**
   * Returns an outcome for each group as it is now. A grant leaves its group when its answer
   * differs from that of the others, or when it is gone.
   */
  settle(answers: readonly RenewalAnswer[]): readonly RenewalOutcome[] {
    const outcomes: RenewalOutcome[] = [];
    let first = 0;
    for (const [i, group] of this.#groups.entries()) {
      this.#settleGroup(group, this.#grants[i]!, answers, first, outcomes);
      first += this.#grants[i]!.length;
    }
    return outcomes;
  }

  #settleGroup(
    group: RenewalGroup,
    grants: readonly Grant[],
    answers: readonly RenewalAnswer[],
    first: number,
    outcomes: RenewalOutcome[],
  ): void {
    const indexAt = (i: number) => this.refs[first + i]!.index ?? 0;
    // If no grant has left, no grant needs to be touched.
    const isWhole = group.consistsOf(grants);
    let shared: RenewalAnswer | null = null;
    for (let i = 0; i < grants.length; i++) {
      const answer = answers[first + i]!;
      const isMember = isWhole || grants[i]!.group === group;
      if (isMember && answer.kind !== "gone") {
        shared ??= answer;
        if (isSame(answer, shared)) continue;
      }
      outcomes.push({ group: grants[i]!.leaveGroup(), answer, index: indexAt(i) });
    }
    if (shared !== null) outcomes.push({ group, answer: shared, index: indexAt(0) });
  }
}

function isSame(answer: RenewalAnswer, other: RenewalAnswer): boolean {
  if (answer === other) return true;
  if (answer.kind === "renewed" && other.kind === "renewed") {
    return answer.since === other.since && answer.ttlMs === other.ttlMs;
  }
  if (answer.kind !== "failed" || other.kind !== "failed") return false;
  return answer.error === other.error && answer.effect === other.effect;
}
