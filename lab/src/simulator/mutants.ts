import { KINDS, RELAPSE } from "./plan.js";
import type { Flaws } from "./run.js";

export interface Mutant {
  readonly name: string;
  readonly flaws: Flaws;
  /** A schedule that shows it. Found by the long run, and played again by the short one. */
  readonly seed: number;
  /** Which seeds the long run looks through: from the first, in steps. */
  readonly hunt: { readonly first: number; readonly step: number };
}

const ALL = { first: 1, step: 1 };
const RELAPSES = { first: RELAPSE, step: KINDS };

/** Each is one mistake that somebody could make. The simulator is worth what it finds of them. */
export const mutants: readonly Mutant[] = [
  {
    name: "a counter is raised to what it has already",
    flaws: { node: { raisesEqual: true } },
    seed: 98,
    hunt: ALL,
  },
  {
    name: "a renewal makes a record that is gone",
    flaws: { node: { renewalCreates: true } },
    seed: 434,
    hunt: ALL,
  },
  {
    name: "validity counts from the answer",
    flaws: { contender: { countsFromReply: true } },
    seed: 644,
    hunt: ALL,
  },
  {
    name: "a release goes only where it was accepted",
    flaws: { releasesWhereAccepted: true },
    seed: 1,
    hunt: ALL,
  },
  { name: "no quarantine", flaws: { skipsQuarantine: true }, seed: 53, hunt: ALL },
  {
    name: "certification without the nonce",
    flaws: { node: { certifiesWithoutNonce: true } },
    seed: 18687,
    hunt: RELAPSES,
  },
  {
    name: "certification without compare-and-set, of whatever life it is now",
    flaws: { node: { certifiesAnyLife: true } },
    seed: 18687,
    hunt: RELAPSES,
  },
  { name: "fewer than a majority", flaws: { writeQuorum: 1 }, seed: 2, hunt: ALL },
  {
    name: "a late acquire after its release is accepted",
    flaws: { node: { ignoresTombstones: true } },
    seed: 51,
    hunt: ALL,
  },
];
