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
    seed: 99,
    hunt: ALL,
  },
  {
    name: "a renewal makes a record that is gone",
    flaws: { node: { renewalCreates: true } },
    seed: 24,
    hunt: ALL,
  },
  {
    name: "validity counts from the answer",
    flaws: { contender: { countsFromReply: true } },
    seed: 1386,
    hunt: ALL,
  },
  {
    name: "a release goes only where it was accepted",
    flaws: { releasesWhereAccepted: true },
    seed: 3,
    hunt: ALL,
  },
  { name: "no quarantine", flaws: { skipsQuarantine: true }, seed: 59, hunt: ALL },
  {
    name: "certification without the nonce",
    flaws: { node: { certifiesWithoutNonce: true } },
    seed: 156191,
    hunt: RELAPSES,
  },
  {
    name: "certification without compare-and-set, of whatever life it is now",
    flaws: { node: { certifiesAnyLife: true } },
    seed: 38079,
    hunt: RELAPSES,
  },
  { name: "fewer than a majority", flaws: { writeQuorum: 1 }, seed: 2, hunt: ALL },
  {
    name: "a late acquire after its release is accepted",
    flaws: { node: { ignoresTombstones: true } },
    seed: 3,
    hunt: ALL,
  },
  {
    name: "an older call of a repeated claim takes back what the newer one was granted",
    flaws: { contender: { everyCallSpeaks: true }, node: { endsNewerCalls: true } },
    seed: 1885,
    hunt: ALL,
  },
  {
    name: "an older call takes back what a newer one, by way of another client, has taken over",
    flaws: { node: { endsNewerCalls: true } },
    seed: 7913,
    hunt: ALL,
  },
  {
    name: "a claim that is repeated gets no fresh life, and is believed to",
    flaws: { node: { repeatsGiveNoLife: true } },
    seed: 267,
    hunt: ALL,
  },
  {
    name: "a lost lease leaves no lock-delay",
    flaws: { node: { keepsNoLockDelay: true } },
    seed: 24,
    hunt: ALL,
  },
  {
    name: "renewals take effect as they arrive, not as they were sent",
    flaws: { node: { renewsAsTheyArrive: true } },
    seed: 3146,
    hunt: ALL,
  },
];
