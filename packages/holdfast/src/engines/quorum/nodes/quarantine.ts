import type { QuorumClock } from "../voting/broadcast.js";
import type { NodeAnswer, NodeRequest, Uncertified } from "./node.js";

/** A mark that was not answered is sent again after this long. */
const MARK_AGAIN_MS = 1_000;

interface QuarantineWait {
  readonly runId: string;
  readonly replId: string;
  /** Null until the node has named this quarantine. */
  nonce: string | null;
  since: number;
  timer: { cancel(): void } | null;
}

export interface QuarantineTerms {
  readonly clock: QuorumClock;
  readonly waitMs: number;
  mintNonce(): string;
  mayCertify(): boolean;
  ask(node: number, request: NodeRequest, answered: (answer: NodeAnswer) => void): void;
  changed(node: number, state: "quarantined" | "certified"): void;
}

/**
 * Delayed restart. A node that may have forgotten grants counts again when every grant that it could
 * have forgotten is over. The first client that sees the node stores a random name (a nonce) for the
 * quarantine on it. A client that has then waited for the whole time, by its own clock, certifies the
 * node, if the node's life and the nonce are still the same. Emptying a node removes the nonce, and so
 * the wait starts again.
 */
export class Quarantine {
  readonly #terms: QuarantineTerms;
  readonly #waits = new Map<number, QuarantineWait>();
  #closed = false;

  constructor(terms: QuarantineTerms) {
    this.#terms = terms;
  }

  /** The time until this client certifies the node; null where it is not in quarantine. */
  leftMs(node: number): number | null {
    const wait = this.#waits.get(node);
    if (wait === undefined) return null;
    return Math.max(0, wait.since + this.#terms.waitMs - this.#terms.clock.now());
  }

  /** Another node in quarantine with the same run id, so one server under two names; else null. */
  twinOf(node: number): number | null {
    const wait = this.#waits.get(node);
    for (const [other, { runId }] of this.#waits) {
      if (other !== node && runId === wait?.runId) return other;
    }
    return null;
  }

  /** Handles every answer that says that the node has no certificate. */
  observe(node: number, seen: Uncertified): void {
    if (this.#closed) return;
    const { runId, replId, nonce } = seen;
    const wait = this.#waits.get(node);
    const now = this.#terms.clock.now();
    const same = wait?.runId === runId && wait.replId === replId;
    if (wait && same && nonce !== null && wait.nonce === nonce) return;
    if (wait && same && nonce === null && wait.nonce === null) {
      if (now - wait.since > MARK_AGAIN_MS) this.#mark(node, wait);
      return;
    }
    if (wait === undefined) this.#terms.changed(node, "quarantined");
    this.#begin(node, { runId, replId, nonce, since: now, timer: null });
  }

  /** Handles an answer that only a certified node gives. */
  cleared(node: number): void {
    const wait = this.#waits.get(node);
    if (wait === undefined) return;
    wait.timer?.cancel();
    this.#waits.delete(node);
    this.#terms.changed(node, "certified");
  }

  close(): void {
    this.#closed = true;
    for (const wait of this.#waits.values()) wait.timer?.cancel();
    this.#waits.clear();
  }

  #begin(node: number, wait: QuarantineWait): void {
    this.#waits.get(node)?.timer?.cancel();
    this.#waits.set(node, wait);
    if (wait.nonce === null) this.#mark(node, wait);
    else this.#wait(node, wait);
  }

  #mark(node: number, wait: QuarantineWait): void {
    wait.since = this.#terms.clock.now();
    this.#terms.ask(node, { verb: "mark", nonce: this.#terms.mintNonce() }, (answer) => {
      if (this.#closed || this.#waits.get(node) !== wait) return;
      if (answer.kind !== "uncertified") return;
      if (answer.runId !== wait.runId || answer.replId !== wait.replId) return;
      // The wait counts from the answer, not the request: before it there was no nonce to compare with.
      wait.nonce = answer.nonce;
      wait.since = this.#terms.clock.now();
      if (wait.nonce !== null) this.#wait(node, wait);
    });
  }

  #wait(node: number, wait: QuarantineWait): void {
    const certify = () => {
      const { runId, replId, nonce } = wait;
      const request = { verb: "certify", runId, replId, nonce: nonce! } as const;
      const isOne = this.twinOf(node) === null;
      if (isOne && this.#terms.mayCertify()) this.#terms.ask(node, request, () => {});
      // A node that does not answer is asked again. If it answers with another life or another nonce,
      // observe() has already replaced this wait with a new one.
      wait.timer = this.#terms.clock.timer(MARK_AGAIN_MS, certify, false);
    };
    wait.timer = this.#terms.clock.timer(this.#terms.waitMs, certify, false);
  }
}
