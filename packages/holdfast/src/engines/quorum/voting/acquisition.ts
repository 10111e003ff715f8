import type { AcquireRequest } from "../nodes/node.js";
import { broadcast } from "./broadcast.js";
import type { Entry } from "./entry.js";
import type { AcquireOutcome, Quorum, QuorumCall } from "./quorum.js";
import { Tally } from "./tally.js";

/** After this many lost bids the answer is busy: the caller may wait for the competitor. */
const MOST_BIDS = 6;
/** After each split vote every contender pauses for a random time, each time up to twice as long. */
const MOST_SPLITS = 7;
const FIRST_PAUSE_MS = 3;
/** A claim that is refused for the first time comes back at once, to get its place in the queue. */
const SOON_MS = 5;
const LATER_MS = [10, 60] as const;

/**
 * One claim, from the proposal of a fence until enough nodes have accepted it or cannot. Each attempt
 * proposes a new fence: a node accepts only a fence greater than all it has heard of. The record of an
 * earlier attempt of the same id does not block it.
 */
export class Acquisition {
  readonly #quorum: Quorum;
  readonly #entry: Entry;
  readonly #turn: number;
  readonly #done: (outcome: AcquireOutcome) => void;
  /** After this instant a grant would end before the caller could use it. */
  readonly #goodUntil: number;
  /** The caller is answered soon after this instant. */
  readonly #bidsUntil: number;
  readonly #patienceMs: number;
  readonly #order: number;
  #bids = 0;
  #splits = 0;

  constructor(
    quorum: Quorum,
    entry: Entry,
    turn: number,
    { patienceMs, order }: QuorumCall,
    done: (outcome: AcquireOutcome) => void,
  ) {
    this.#quorum = quorum;
    this.#entry = entry;
    this.#turn = turn;
    this.#done = done;
    const now = quorum.clock.now();
    this.#goodUntil = now + entry.claim.ttlMs * (1 - quorum.terms.drift);
    this.#bidsUntil = Math.min(now + patienceMs, this.#goodUntil);
    this.#patienceMs = patienceMs;
    this.#order = order;
  }

  start() {
    const { terms, clockWatch, highestFence, size } = this.#quorum;
    const entry = this.#entry;
    const { resource, ttlMs, tokens } = entry.claim;
    if (entry.isOver) return this.#done({ kind: "gone", why: "unknown" });
    if (!this.#isNewest) return this.#overtaken();
    if (!entry.granted) {
      entry.attempt++;
      entry.fence = this.#proposal();
      entry.tokens = tokens;
      highestFence.note(resource, entry.fence + tokens - 1);
    }
    this.#bids++;
    const { attempt } = entry;
    const tally = new Tally(size, terms.writeQuorum, entry.fence, this.#quorum.rttMs);
    const request = this.#request();
    broadcast(this.#quorum, {
      request: (node) => {
        entry.unanswered[node]!++;
        return request;
      },
      patienceMs: Math.min(this.#quorum.patienceMs(ttlMs), Math.max(1, this.#leftMs())),
      heard: (node, answer) => {
        entry.answered(attempt, node, answer);
        const isYes = answer.kind === "accepted" || answer.kind === "known";
        const said = isYes && clockWatch.isSuspect(node) ? "suspect" : answer;
        if (tally.add(node, said, this.#limitUs)) return true;
        // Each contender has some of the nodes: do not wait for nodes that were already silent before.
        return tally.busy > 0 && (tally.missing & ~this.#quorum.silent) === 0;
      },
      late: (node, answer) => {
        entry.answered(attempt, node, answer);
        if (answer.kind === "accepted" && entry.isGivenUp(attempt)) this.#takeBack(1 << node);
      },
      ended: () => this.#judge(tally),
      over: (silent) => {
        // A request without an answer may still arrive, so a tombstone is left for it.
        if (entry.isGivenUp(attempt)) this.#takeBack(silent | tally.doubtful);
        this.#quorum.silent |= silent;
      },
    });
  }

  /**
   * Proposes a fence above every fence heard of, and at least the nodes' time. A fence beyond the time
   * of every node was bid with a clock that is far off, before enough other nodes had told theirs.
   */
  #proposal(): number {
    const { clockWatch, highestFence } = this.#quorum;
    const { resource } = this.#entry.claim;
    if (highestFence.of(resource) > this.#limitUs) highestFence.forget(resource);
    return Math.max(highestFence.of(resource) + 1, clockWatch.estimateUs());
  }

  /** The greatest fence that a node with a right clock can ask for. */
  get #limitUs(): number {
    const { clockWatch, terms } = this.#quorum;
    return clockWatch.estimateUs() + terms.maxSkewMs * 1e3;
  }

  #request(): AcquireRequest {
    const { claim, attempt, fence, tokens, ticket } = this.#entry;
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
      past: 0,
      ticket,
      arrivalMs: this.#quorum.arrivalMs,
      order: this.#order,
    };
  }

  /** Only the newest call with an id judges, bids and gives up; a release also counts as a call. */
  get #isNewest(): boolean {
    return this.#quorum.speaksFor(this.#entry, this.#turn);
  }

  /** The outcome of the newer call also answers this one, if it is known in time. */
  #overtaken() {
    const entry = this.#entry;
    if (entry.isOver) return this.#done({ kind: "overtaken" });
    // This call heard of these nodes only after the newer call had given up what stood then.
    this.#takeBack(entry.leftovers);
    if (entry.outcome !== null) return this.#done(entry.outcome);
    const answer = (outcome: AcquireOutcome) => {
      timer.cancel();
      entry.followers.delete(answer);
      this.#done(outcome);
    };
    const late = () => answer({ kind: "overtaken" });
    const timer = this.#quorum.clock.timer(this.#restMs(), late, false);
    entry.followers.add(answer);
  }

  #judge(tally: Tally) {
    if (!this.#isNewest) return this.#overtaken();
    const { terms, highestFence } = this.#quorum;
    const entry = this.#entry;
    const { resource } = entry.claim;
    tally.leaveOutAbove(this.#limitUs);
    if (tally.counter > 0) highestFence.note(resource, tally.counter);
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
      // Too few nodes still hold the grant of this id, so it must bid again, above all others.
      entry.granted = false;
      entry.attempt = Math.max(entry.attempt, tally.lastAttempt);
      if (again && tally.present >= 1) return this.start();
    }
    if (tally.present < terms.writeQuorum) return this.#unanswered(tally);
    if (tally.accepted + tally.outbid >= terms.writeQuorum && again) return this.start();
    if (tally.isSplit && this.#splits < MOST_SPLITS) return this.#split(tally);
    this.#busy(tally);
  }

  #granted(tally: Tally) {
    const entry = this.#entry;
    if (this.#quorum.clock.now() >= this.#goodUntil) return this.#unanswered(tally);
    entry.granted = true;
    entry.lives(entry.claim.ttlMs, this.#quorum.clock.now());
    this.#quorum.waitsNoMore(entry);
    const { fence, tokens, claim } = entry;
    const ttlMs = Math.min(claim.ttlMs, tally.leftMs(fence));
    this.#done({ kind: "granted", fence, tokens, ttlMs });
  }

  #split(tally: Tally) {
    const { clock, environment } = this.#quorum;
    const entry = this.#entry;
    const firstMs = Math.max(FIRST_PAUSE_MS, this.#quorum.rttMs);
    const pauseMs = firstMs * 2 ** this.#splits++ * environment.random();
    if (this.#leftMs() <= pauseMs) return this.#busy(tally);
    this.#bids = 0;
    entry.givenUp = entry.attempt;
    entry.givenUpBy = this.#order;
    this.#takeBack(entry.leftovers, () => void clock.timer(pauseMs, () => this.start(), false));
  }

  #busy(tally: Tally): void {
    const soon = this.#quorum.waits(this.#entry);
    const random = this.#quorum.environment.random();
    const spreadMs = LATER_MS[1] - LATER_MS[0] + this.#quorum.rttMs;
    const laterMs = LATER_MS[0] + random * spreadMs;
    const freeMs = tally.freeAfterMs();
    // No holder is in the way for long, so contenders split the vote: spread them out.
    const retryAfterMs = soon ? SOON_MS : freeMs <= 0 ? laterMs : freeMs + random * 5 + 1;
    this.#giveUp(tally, {
      kind: "busy",
      holders: tally.holders(),
      retryAfterMs,
      isRemembered: !soon,
    });
  }

  #unanswered(tally: Tally): void {
    const effect = tally.inDoubt || tally.isKnown ? "unknown" : "none";
    this.#giveUp(tally, { kind: "unanswered", effect, absent: tally.absent() });
  }

  #giveUp(tally: Tally, outcome: AcquireOutcome) {
    // A live grant must not end because a repeat of its claim was not answered.
    if (tally.isKnown && outcome.kind === "unanswered") return this.#done(outcome);
    const entry = this.#entry;
    entry.givenUp = entry.attempt;
    entry.givenUpBy = this.#order;
    entry.granted = false;
    this.#takeBack(entry.leftovers, (isSure) => this.#done(isSure ? outcome : inDoubt(outcome)));
  }

  /**
   * Releases by id on every node that may have a record: nodes that accepted this attempt or an earlier
   * one, and in the end nodes that did not answer. Only a refusal proves that a node has no record.
   */
  #takeBack(nodes: number, then: (isSure: boolean) => void = () => {}): void {
    this.#quorum.takeBack(this.#entry, nodes, this.#restMs(), then);
  }

  /** The time until the caller must be answered. */
  #restMs(): number {
    return Math.max(1, this.#leftMs() + this.#patienceMs / 8);
  }

  #leftMs(): number {
    return this.#bidsUntil - this.#quorum.clock.now();
  }
}

/** A node accepted and has not confirmed the take-back, so the claim must be released when it is over. */
function inDoubt(outcome: AcquireOutcome): AcquireOutcome {
  if (outcome.kind === "busy") return { ...outcome, isRemembered: true };
  return outcome.kind === "unanswered" ? { ...outcome, effect: "unknown" } : outcome;
}
