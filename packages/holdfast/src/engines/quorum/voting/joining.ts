import type { NodeAnswer } from "../nodes/node.js";
import type { Entry } from "./entry.js";
import type { Quorum } from "./quorum.js";
import type { RenewParams } from "./renewal.js";

/** A bid that is in the way is usually taken back within milliseconds. */
const MOST_ASKED = 5;
const PAUSE_MS = 5;

/**
 * Lets a grant that W nodes have join a node that lost it. While W nodes have the record, nobody else
 * is granted, so every greater fence that this node had heard of by then was bid and never granted. The
 * grant may pass those fences, and no others: a request that arrives late, after this node accepted a
 * successor, finds a counter that the holder has not heard of. So a client that has the record on W
 * nodes at once knows that no greater fence was granted, whether a node took it first or joined later.
 */
export class Joining {
  readonly #quorum: Quorum;
  readonly #entry: Entry;
  readonly #node: number;
  readonly #params: RenewParams;
  readonly #past: number;
  readonly #confirm: () => void;
  #asked = 0;

  /** heard: the node's counter, told before W nodes confirmed the record. */
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
    // A later renewal may ask for less time, or leave the grant behind.
    if (entry.isOver || entry.lastOrder !== order || this.#asked++ === MOST_ASKED) return;
    const { claim, attempt, fence, tokens } = entry;
    const { resource, id, mode, delayMs, label } = claim;
    const what = { resource, id, attempt, mode, ttlMs, delayMs, fence, tokens, label } as const;
    const how = { past: this.#past, ticket: 0, arrivalMs: 0, order };
    // Always counts as unanswered, so that the release leaves a tombstone: the counter does not refuse
    // a second copy of this request.
    entry.unanswered[this.#node]!++;
    this.#quorum.ask(this.#node, { verb: "acquire", ...what, ...how }, (answer) =>
      this.#answered(answer),
    );
  }

  #answered(answer: NodeAnswer): void {
    // A node answers "counter" only when it is free: a bid that stands on it may still be granted. The
    // grant may also have ended elsewhere, so one more renewal must prove that it lived until now.
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
