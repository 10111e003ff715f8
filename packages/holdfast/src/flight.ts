import { Company, grantsOf, refOf, type Ward } from "./company.js";
import type { Failed, Gone, Renewed, RenewRef } from "./engine.js";
import type { Grant } from "./grant.js";

export type Answer = Renewed | Gone | Failed;

type Landed = (ward: Ward, answer: Answer, index: number) => void;

/** One batch of renewals on its way, of those who were to be renewed when it was made. */
export class Flight {
  readonly refs: readonly RenewRef[];
  readonly #wards: readonly Ward[];
  readonly #grants: readonly (readonly Grant[])[];

  constructor(wards: readonly Ward[]) {
    this.#wards = wards;
    this.#grants = wards.map(grantsOf);
    const [only] = wards;
    this.refs =
      wards.length === 1 && only instanceof Company ? only.refs : this.#grants.flat().map(refOf);
  }

  /**
   * Called when it is sent, which may be later. Of those who have left their company by then nothing
   * less is to be expected than they have: all there are renewed for as long as they were confirmed.
   */
  expect(startedAt: number): void {
    for (const { leader } of this.#wards) leader.expect(startedAt, leader.ttlMs);
  }

  /**
   * Calls back with each ward as it is now, its answer, and which token was in use when the renewal was
   * sent. Those of a company who were answered otherwise than the others have left it by then, and so
   * have all who are gone: nobody may be left.
   */
  land(answers: readonly Answer[], landed: Landed): void {
    const indexAt = (i: number) => this.refs[i]!.index ?? 0;
    for (let w = 0, first = 0; w < this.#wards.length; w++) {
      const ward = this.#wards[w]!;
      const grants = this.#grants[w]!;
      if (ward instanceof Company) landTogether(ward, grants, answers, first, indexAt, landed);
      else landed(ward, answers[first]!, indexAt(first));
      first += grants.length;
    }
  }
}

function landTogether(
  company: Company,
  grants: readonly Grant[],
  answers: readonly Answer[],
  first: number,
  indexAt: (i: number) => number,
  landed: Landed,
): void {
  const shared = answers[first]!;
  for (let i = 0; i < grants.length; i++) {
    const answer = answers[first + i]!;
    // As long as nobody has left, none of them need be touched.
    if (isShared(answer, shared) && company.isStill(grants)) continue;
    const grant = grants[i]!;
    if (grant.company === company) {
      if (isShared(answer, shared)) continue;
      company.leave(grant);
    }
    landed(grant, answer, indexAt(first + i));
  }
  landed(company, shared, indexAt(first));
}

function isShared(answer: Answer, shared: Answer): boolean {
  if (answer.kind === "gone") return false;
  if (answer === shared) return true;
  if (answer.kind === "renewed" && shared.kind === "renewed") {
    return answer.since === shared.since && answer.ttlMs === shared.ttlMs;
  }
  if (answer.kind === "renewed" || shared.kind !== "failed") return false;
  return answer.error === shared.error && answer.effect === shared.effect;
}
