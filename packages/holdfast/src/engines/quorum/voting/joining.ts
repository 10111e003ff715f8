import type { NodeAnswer } from "../nodes/node.js";
import type { Entry } from "./entry.js";
import type { Quorum } from "./quorum.js";
import type { RenewParams } from "./renewal.js";

/** A bid that stands in the way is mostly taken back in a moment. */
const MOST_ASKED = 5;
const PAUSE_MS = 5;

/**
 * A grant that W nodes have joins one that lost it. While W nodes have the record nobody else is
 * granted, so every greater fence that this node had heard of by then was bid and never granted. The
 * grant may pass those, and no others: a request that arrives late, after a successor was granted
 * here, finds a counter that the holder has not heard of. So whoever has the record on W nodes at once
 * knows that no greater fence was granted, whether a node took it at first or joined later.
 */
export class Joining {
  readonly #quorum: Quorum;
  readonly #entry: Entry;
  readonly #node: number;
  readonly #params: RenewParams;
  readonly #past: number;
  readonly #confirm: () => void;
  #asked = 0;

  /** heard: the node's counter as it was told before W nodes confirmed the record. */
  constructor(
    quorum: Quorum,
    entry: Entry,
    node: number,
    params: RenewParams,
    heard: number,
    confirm: () => void,
  ) {
    this.#confirm = confirm;
    this.#quorum = quorum;
    this.#entry = entry;
    this.#node = node;
    this.#params = params;
    this.#past = Math.max(entry.fence + entry.tokens - 1, heard);
  }

  ask(): void {
    const entry = this.#entry;
    const { ttlMs, order } = this.#params;
    // A later renewal may want less, or have left the grant to time.
    if (entry.isOver || entry.lastOrder !== order || this.#asked++ === MOST_ASKED) return;
    const { claim, attempt, fence, tokens } = entry;
    const { resource, id, mode, delayMs, label } = claim;
    const what = { resource, id, attempt, mode, ttlMs, delayMs, fence, tokens, label } as const;
    const how = { past: this.#past, ticket: 0, arrivalMs: 0, order };
    // Never answered, for the release: a request that comes a second time must find a tombstone, because
    // the counter does not refuse it.
    entry.unanswered[this.#node]!++;
    this.#quorum.ask(this.#node, { verb: "acquire", ...what, ...how }, (answer) =>
      this.#answered(answer),
    );
  }

  #answered(answer: NodeAnswer): void {
    // Only of a node that is free: the bid of somebody who stands there may still be granted. The grant
    // may have been ended elsewhere, too: whoever renews it once more knows that it lived until now.
    if (answer.kind === "counter") {
      this.#entry.counters[this.#node] = answer.counter;
      this.#confirm();
    }
    if (answer.kind !== "busy") return;
    const { clock, rttMs, environment } = this.#quorum;
    const pauseMs = Math.max(PAUSE_MS, rttMs) * (1 + environment.random());
    clock.timer(pauseMs, () => this.ask(), false);
  }
}
