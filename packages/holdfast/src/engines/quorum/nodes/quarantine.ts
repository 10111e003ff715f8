import type { QuorumClock } from "../voting/broadcast.js";
import type { NodeAnswer, NodeRequest, Uncertified } from "./node.js";

/** A mark that was never answered is set again after this long. */
const MARK_AGAIN_MS = 1_000;

interface QuarantineWait {
  readonly runId: string;
  readonly replId: string;
  /** Null until the node has told which quarantine this is. */
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
 * Delayed restart. A node that may have forgotten counts again when every grant that it could have
 * forgotten is over. The first who sees it gives the quarantine a random name on the node itself;
 * whoever has then waited for the whole time, by its own clock, certifies the node, if it is still the
 * same life of the same quarantine. An emptied node has no name any more, and the wait begins anew.
 */
export class Quarantine {
  readonly #terms: QuarantineTerms;
  readonly #waits = new Map<number, QuarantineWait>();
  #closed = false;

  constructor(terms: QuarantineTerms) {
    this.#terms = terms;
  }

  /** Until this client would certify the node; null where it is not in quarantine. */
  leftMs(node: number): number | null {
    const wait = this.#waits.get(node);
    if (wait === undefined) return null;
    return Math.max(0, wait.since + this.#terms.waitMs - this.#terms.clock.now());
  }

  /** Another node in quarantine that lives this very life: two names of one server; else null. */
  twinOf(node: number): number | null {
    const wait = this.#waits.get(node);
    for (const [other, { runId }] of this.#waits) {
      if (other !== node && runId === wait?.runId) return other;
    }
    return null;
  }

  /** Any answer that says the node has no certificate. */
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

  /** An answer that only a certified node gives. */
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
      // Counted from the answer, not the question: before it there was nothing to compare with.
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
      // A node that does not answer is asked again; one that answers with another life or another
      // name has been observed already, and its new wait has taken this one's place.
      wait.timer = this.#terms.clock.timer(MARK_AGAIN_MS, certify, false);
    };
    wait.timer = this.#terms.clock.timer(this.#terms.waitMs, certify, false);
  }
}
