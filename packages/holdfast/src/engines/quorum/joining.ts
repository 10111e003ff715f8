import type { Entry } from "./entry.js";
import type { NodeAnswer } from "./node.js";
import type { Quorum } from "./quorum.js";
import type { RenewWish } from "./renewal.js";

/** Bidders may raise the counter in between; the next renewal asks again. */
const MOST_ASKED = 3;

/**
 * A grant that W nodes have joins one that lost it. While W nodes have the record nobody else is
 * granted, so every greater fence that this node has heard of by then was bid and never granted. The
 * grant may pass those, and no others: a request that arrives late, after a successor was granted
 * here, finds a counter that the holder has not heard of. So whoever has the record on W nodes at once
 * knows that no greater fence was granted, whether a node took it at first or joined later.
 */
export class Joining {
  readonly #quorum: Quorum;
  readonly #entry: Entry;
  readonly #node: number;
  readonly #wish: RenewWish;
  /** Until then W nodes have the record for certain. */
  readonly #until: number;
  #asked = 0;

  constructor(quorum: Quorum, entry: Entry, node: number, wish: RenewWish, until: number) {
    this.#quorum = quorum;
    this.#entry = entry;
    this.#node = node;
    this.#wish = wish;
    this.#until = until;
  }

  start(): void {
    const { fence, tokens } = this.#entry;
    this.#ask(fence + tokens - 1);
  }

  #ask(past: number): void {
    const entry = this.#entry;
    const { ttlMs, order } = this.#wish;
    // A later renewal may want less, or have left the grant to time.
    if (entry.isOver || entry.lastOrder !== order || this.#asked++ === MOST_ASKED) return;
    const { claim, attempt, fence, tokens } = entry;
    const { resource, id, mode, delayMs, label } = claim;
    const what = { resource, id, attempt, mode, ttlMs, delayMs, fence, tokens, label } as const;
    entry.unanswered[this.#node]!++;
    this.#quorum.ask(
      this.#node,
      { verb: "acquire", ...what, past, wants: false, order },
      (answer) => this.#answered(past, answer),
    );
  }

  #answered(past: number, answer: NodeAnswer): void {
    const entry = this.#entry;
    if (answer.kind !== "failed" || answer.effect === "none") entry.unanswered[this.#node]!--;
    // Only a node that is free: the bid of somebody who stands there may still be granted later.
    if (answer.kind !== "counter" || answer.counter <= past) return;
    if (this.#quorum.clock.now() < this.#until) this.#ask(answer.counter);
  }
}
