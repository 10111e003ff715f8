import { canvass } from "./canvass.js";
import type { AcquireRequest, NodeAnswer } from "./node.js";
import type { AcquireOutcome, Entry, Quorum } from "./quorum.js";
import { Tally } from "./tally.js";

/** Outbid so often, somebody else is in the way, and the caller may wait for that. */
const MOST_BIDS = 6;
/** Split votes: each time all who met wait for a random while, twice as long at most as before. */
const MOST_SPLITS = 7;
const FIRST_PAUSE_MS = 3;
/** A writer behind readers comes back at once, to say that it is still there. */
const SOON_MS = 15;
const LATER_MS = [10, 60] as const;

/**
 * One claim, from the proposal of a fence until enough nodes have accepted it or cannot. Each attempt
 * is a proposal of its own: a node accepts only what is greater than all it has heard of, and what a
 * former attempt of the same id left there counts as free.
 */
export class Acquisition {
  readonly #quorum: Quorum;
  readonly #entry: Entry;
  readonly #done: (outcome: AcquireOutcome) => void;
  readonly #startedAt: number;
  #bids = 0;
  #splits = 0;

  constructor(quorum: Quorum, entry: Entry, done: (outcome: AcquireOutcome) => void) {
    this.#quorum = quorum;
    this.#entry = entry;
    this.#done = done;
    this.#startedAt = quorum.clock.now();
  }

  start() {
    const { terms, watch, seen, size, clock } = this.#quorum;
    const entry = this.#entry;
    const { resource, ttlMs, tokens } = entry.claim;
    if (entry.isOver) return this.#done({ kind: "gone", why: "unknown" });
    if (!entry.granted) {
      entry.attempt++;
      entry.fence = Math.max(seen.of(resource) + 1, watch.estimateUs());
      entry.tokens = tokens;
      seen.note(resource, entry.fence + tokens - 1);
    }
    this.#bids++;
    const { attempt } = entry;
    const tally = new Tally(size, terms.writeQuorum, entry.fence);
    const request = this.#request();
    const isGivenUp = () => attempt <= entry.givenUp && !entry.isOver;
    canvass(this.#quorum, {
      request: (node) => {
        entry.unanswered[node]!++;
        return request;
      },
      patienceMs: Math.min(
        this.#quorum.patienceMs(ttlMs),
        Math.max(1, this.#startedAt + ttlMs - clock.now()),
      ),
      heard: (node, answer) => {
        settled(entry, node, answer);
        const suspect = answer.kind === "accepted" && watch.isSuspect(node);
        if (tally.add(node, suspect ? "suspect" : answer)) return true;
        // Contenders have some nodes each: one that is silent anyway is not what they wait for.
        return tally.busy > 0 && (tally.missing & ~this.#quorum.silent) === 0;
      },
      late: (node, answer) => {
        settled(entry, node, answer);
        if (answer.kind === "accepted" && isGivenUp()) this.#takeBack(1 << node);
      },
      ended: () => this.#judge(tally),
      over: (silent) => {
        // Where no answer came, the request may still arrive. A tombstone awaits it.
        if (isGivenUp()) this.#takeBack(silent | tally.doubtful);
        this.#quorum.silent |= silent;
      },
    });
  }

  #request(): AcquireRequest {
    const { claim, attempt, fence, tokens, waited } = this.#entry;
    return {
      verb: "acquire",
      resource: claim.resource,
      id: claim.id,
      attempt,
      mode: claim.mode,
      ttlMs: claim.ttlMs,
      delayMs: claim.delayMs,
      fence,
      tokens,
      label: claim.label,
      rejoin: false,
      wants: waited,
    };
  }

  #judge(tally: Tally) {
    const { terms, seen, watch } = this.#quorum;
    const entry = this.#entry;
    const { resource } = entry.claim;
    tally.leaveOutAbove(watch.estimateUs() + terms.maxSkewMs * 1e3);
    if (tally.counter > 0) seen.note(resource, tally.counter);
    if (tally.terms !== null) return this.#giveUp(tally, { kind: "terms", ...tally.terms });
    if (tally.gone !== null) return this.#giveUp(tally, { kind: "gone", why: tally.gone });
    if (tally.accepted >= terms.writeQuorum) return this.#granted(tally);
    const known = tally.knownFence;
    if (known !== null) {
      entry.fence = known;
      entry.tokens = tally.tokensOf(known);
      entry.attempt = Math.max(entry.attempt, tally.lastAttempt);
      return this.#granted(tally);
    }
    const again = this.#bids < MOST_BIDS && this.#leftMs() > 0;
    if (tally.isKnown || entry.granted) {
      // What this id once held is not held by enough any more: it has to bid anew, above all others.
      entry.granted = false;
      entry.attempt = Math.max(entry.attempt, tally.lastAttempt);
      if (again && tally.present >= 1) return this.start();
    }
    if (tally.present < terms.writeQuorum) return this.#unanswered(tally);
    if (tally.accepted + tally.outbid >= terms.writeQuorum && again) return this.start();
    if (tally.isSplit && this.#splits < MOST_SPLITS && this.#leftMs() > 0) return this.#split();
    this.#busy(tally);
  }

  #granted(tally: Tally) {
    const entry = this.#entry;
    if (this.#leftMs() <= 0) return this.#unanswered(tally);
    entry.granted = true;
    entry.waited = false;
    this.#done({ kind: "granted", fence: entry.fence, tokens: entry.tokens });
  }

  #split(): void {
    const { clock, surroundings } = this.#quorum;
    const entry = this.#entry;
    const pauseMs = FIRST_PAUSE_MS * 2 ** this.#splits++ * surroundings.random();
    this.#bids = 0;
    entry.givenUp = entry.attempt;
    this.#takeBack(entry.standing, () => void clock.timer(pauseMs, () => this.start(), false));
  }

  #busy(tally: Tally): void {
    const entry = this.#entry;
    const first = !entry.waited;
    entry.waited = true;
    const soon = first && entry.claim.mode === "x" && tally.busy > 0 && tally.behindReaders;
    const random = this.#quorum.surroundings.random();
    const laterMs = LATER_MS[0] + random * (LATER_MS[1] - LATER_MS[0]);
    const freeMs = tally.freeAfterMs();
    // Nobody in the way for long, and yet not granted: contenders who should not meet again.
    const retryAfterMs = soon ? SOON_MS : freeMs <= 0 ? laterMs : freeMs + random * 5 + 1;
    this.#giveUp(tally, { kind: "busy", holders: tally.holders(), retryAfterMs });
  }

  #unanswered(tally: Tally): void {
    const effect = tally.inDoubt || tally.isKnown ? "unknown" : "none";
    this.#giveUp(tally, { kind: "unanswered", effect, absent: tally.absent() });
  }

  #giveUp(tally: Tally, outcome: AcquireOutcome) {
    // A grant that lives must not be ended because a repeat of its claim was not answered.
    if (tally.isKnown && outcome.kind === "unanswered") return this.#done(outcome);
    const entry = this.#entry;
    entry.givenUp = entry.attempt;
    entry.granted = false;
    this.#takeBack(entry.standing, () => this.#done(outcome));
  }

  /**
   * By id, wherever it may stand: where it was accepted, now or in an earlier attempt, and in the end
   * wherever no answer came. Only a refusal is a node's word that it has nothing of this attempt.
   */
  #takeBack(nodes: number, then = () => {}): void {
    this.#quorum.takeBack(this.#entry, nodes, then);
  }

  #leftMs(): number {
    const { clock, terms } = this.#quorum;
    const lifeMs = this.#entry.claim.ttlMs * (1 - terms.drift);
    return this.#startedAt + lifeMs - clock.now();
  }
}

function settled(entry: Entry, node: number, answer: NodeAnswer): void {
  if (answer.kind !== "failed" || answer.effect === "none") entry.unanswered[node]!--;
  if (answer.kind === "accepted" || answer.kind === "known") entry.standing |= 1 << node;
}
