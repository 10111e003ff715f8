import { KINDS, RELAPSE, RELOAD } from "./plan.js";
import type { Flaws } from "./run.js";

export interface Mutant {
  readonly name: string;
  readonly flaws: Flaws;
  /** A seed that shows the mistake. The long test found it, and the short test plays it again. */
  readonly seed: number;
  /** The seeds that the long test tries: from `first`, in steps. */
  readonly hunt: { readonly first: number; readonly step: number };
}

const ALL = { first: 1, step: 1 };
const RELAPSES = { first: RELAPSE, step: KINDS };
const RELOADS = { first: RELOAD, step: KINDS };
const DISORDER = { first: RELOAD - 1, step: KINDS };

/** Each mutant is one mistake that a programmer could make. The simulator must find every one. */
export const mutants: readonly Mutant[] = [
  {
    name: "a counter is raised to what it has already",
    flaws: { node: { raisesEqual: true } },
    seed: 281,
    hunt: ALL,
  },
  {
    name: "a renewal makes a record that is gone",
    flaws: { node: { renewalCreates: true } },
    seed: 1,
    hunt: ALL,
  },
  {
    name: "validity counts from the answer",
    flaws: { client: { countsFromReply: true } },
    seed: 4429,
    hunt: ALL,
  },
  {
    name: "a release goes only where it was accepted",
    flaws: { releasesWhereAccepted: true },
    seed: 1,
    hunt: ALL,
  },
  { name: "no quarantine", flaws: { skipsQuarantine: true }, seed: 39, hunt: ALL },
  {
    name: "certification without the nonce",
    flaws: { node: { certifiesWithoutNonce: true } },
    seed: 5503,
    hunt: RELAPSES,
  },
  {
    name: "certification without compare-and-set, of whatever life it is now",
    flaws: { node: { certifiesAnyLife: true } },
    seed: 5503,
    hunt: RELAPSES,
  },
  { name: "fewer than a majority", flaws: { writeQuorum: 1 }, seed: 5, hunt: ALL },
  {
    name: "a late acquire after its release is accepted",
    flaws: { node: { ignoresTombstones: true } },
    seed: 1,
    hunt: ALL,
  },
  {
    name: "an older call of a repeated claim takes back what the newer one was granted",
    flaws: { client: { kind: "Outspoken" }, node: { endsNewerCalls: true } },
    seed: 696,
    hunt: ALL,
  },
  {
    name: "an older call takes back what a newer one, by way of another client, has taken over",
    flaws: { node: { endsNewerCalls: true } },
    seed: 696,
    hunt: ALL,
  },
  {
    name: "a claim that is repeated gets no fresh life, and is believed to",
    flaws: { node: { repeatsGiveNoLife: true } },
    seed: 462,
    hunt: ALL,
  },
  {
    name: "a lost lease leaves no lock-delay",
    flaws: { node: { keepsNoLockDelay: true } },
    seed: 116,
    hunt: ALL,
  },
  {
    name: "renewals take effect as they arrive, not as they were sent",
    flaws: { node: { renewsAsTheyArrive: true } },
    seed: 132830,
    hunt: DISORDER,
  },
  {
    name: "validity is not shortened by what clocks may differ",
    flaws: { client: { ignoresDrift: true } },
    seed: 384,
    hunt: ALL,
  },
  {
    name: "certification of an emptied node without the nonce",
    flaws: { node: { certifiesEmptiedWithoutNonce: true } },
    seed: 5503,
    hunt: RELAPSES,
  },
  {
    name: "certification of a node with an old certificate without the nonce",
    flaws: { node: { certifiesLapsedWithoutNonce: true } },
    seed: 86771,
    hunt: RELOADS,
  },
  {
    name: "tombstones of 50 ms",
    flaws: { node: { tombstonesMs: 50 } },
    seed: 25,
    hunt: ALL,
  },
  {
    name: "what was given up stays on the first node",
    flaws: { client: { kind: "Forgetful" } },
    seed: 171,
    hunt: ALL,
  },
  {
    name: "what is accepted after it was given up stays",
    flaws: { client: { kind: "Heedless" } },
    seed: 84,
    hunt: ALL,
  },
  {
    name: "a grant joins a node past any counter",
    flaws: { node: { joinsPastAnyCounter: true } },
    seed: 4296,
    hunt: ALL,
  },
  {
    name: "a grant joins a node only above its counter",
    flaws: { node: { joinsAboveOnly: true } },
    seed: 16,
    hunt: ALL,
  },
  {
    name: "the clock does not stand in for a counter that was forgotten",
    flaws: { node: { trustsNoClock: true } },
    seed: 74,
    hunt: ALL,
  },
  {
    name: "a node whose clock was set counts",
    flaws: { client: { kind: "Trusting" } },
    seed: 1337,
    hunt: ALL,
  },
  {
    name: "a client with other terms certifies a node",
    flaws: { client: { kind: "Intruding" } },
    seed: 472,
    hunt: ALL,
  },
];
