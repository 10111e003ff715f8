import type { QuorumClock } from "../voting/broadcast.js";
import type { NodeAnswer, NodeRequest, Uncertified } from "./node.js";

/** A mark that was never answered is set again after this long. */
const MARK_AGAIN_MS = 1_000;

interface Watch {
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
  readonly #watches = new Map<number, Watch>();
  #closed = false;

  constructor(terms: QuarantineTerms) {
    this.#terms = terms;
  }

  /** Until this client would certify the node; null where it is not in quarantine. */
  leftMs(node: number): number | null {
    const watch = this.#watches.get(node);
    if (watch === undefined) return null;
    return Math.max(0, watch.since + this.#terms.waitMs - this.#terms.clock.now());
  }

  /** Another node in quarantine that lives this very life: two names of one server; else null. */
  twinOf(node: number): number | null {
    const watch = this.#watches.get(node);
    for (const [other, { runId }] of this.#watches) {
      if (other !== node && runId === watch?.runId) return other;
    }
    return null;
  }

  /** Any answer that says the node has no certificate. */
  observe(node: number, seen: Uncertified): void {
    if (this.#closed) return;
    const { runId, replId, nonce } = seen;
    const watch = this.#watches.get(node);
    const now = this.#terms.clock.now();
    const same = watch?.runId === runId && watch.replId === replId;
    if (watch && same && nonce !== null && watch.nonce === nonce) return;
    if (watch && same && nonce === null && watch.nonce === null) {
      if (now - watch.since > MARK_AGAIN_MS) this.#mark(node, watch);
      return;
    }
    if (watch === undefined) this.#terms.changed(node, "quarantined");
    this.#begin(node, { runId, replId, nonce, since: now, timer: null });
  }

  /** An answer that only a certified node gives. */
  cleared(node: number): void {
    const watch = this.#watches.get(node);
    if (watch === undefined) return;
    watch.timer?.cancel();
    this.#watches.delete(node);
    this.#terms.changed(node, "certified");
  }

  close(): void {
    this.#closed = true;
    for (const watch of this.#watches.values()) watch.timer?.cancel();
    this.#watches.clear();
  }

  #begin(node: number, watch: Watch): void {
    this.#watches.get(node)?.timer?.cancel();
    this.#watches.set(node, watch);
    if (watch.nonce === null) this.#mark(node, watch);
    else this.#wait(node, watch);
  }

  #mark(node: number, watch: Watch): void {
    watch.since = this.#terms.clock.now();
    this.#terms.ask(node, { verb: "mark", nonce: this.#terms.mintNonce() }, (answer) => {
      if (this.#closed || this.#watches.get(node) !== watch) return;
      if (answer.kind !== "uncertified") return;
      if (answer.runId !== watch.runId || answer.replId !== watch.replId) return;
      // Counted from the answer, not the question: before it there was nothing to compare with.
      watch.nonce = answer.nonce;
      watch.since = this.#terms.clock.now();
      if (watch.nonce !== null) this.#wait(node, watch);
    });
  }

  #wait(node: number, watch: Watch): void {
    const certify = () => {
      const { runId, replId, nonce } = watch;
      const request = { verb: "certify", runId, replId, nonce: nonce! } as const;
      const isOne = this.twinOf(node) === null;
      if (isOne && this.#terms.mayCertify()) this.#terms.ask(node, request, () => {});
      // A node that does not answer is asked again; one that answers with another life or another
      // name has been observed already, and its new watch has taken this one's place.
      watch.timer = this.#terms.clock.timer(MARK_AGAIN_MS, certify, false);
    };
    watch.timer = this.#terms.clock.timer(this.#terms.waitMs, certify, false);
  }
}
