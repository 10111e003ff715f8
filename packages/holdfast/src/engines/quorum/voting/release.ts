import type { Gone } from "../../../engine.js";
import type { NodeAnswer, ReleaseRequest } from "../nodes/node.js";
import { broadcast } from "./broadcast.js";
import type { Entry } from "./entry.js";
import type { Quorum, Unanswered } from "./quorum.js";
import { absentees } from "./renewal.js";

/** An unanswered acquire may arrive later, and must then find a tombstone. */
const TOMBSTONE_MS = 120_000;

export type ReleaseOutcome =
  | { readonly kind: "released" }
  | { readonly kind: "gone"; readonly why: Gone["why"] }
  | Unanswered;

export interface ReleaseParams {
  readonly resource: string;
  readonly id: string;
  readonly tombstoneMs: number;
  readonly patienceMs: number;
}

/** Which records of one id a release ends. */
export interface ReleaseScope {
  /** Attempts up to this one, of calls up to this order. */
  readonly upTo: number;
  readonly order: number;
  /** Whether the whole claim is over, so that waiters are notified. */
  readonly tell: boolean;
}

/** Everything under this id, whichever client asked for it. */
export const ALL: ReleaseScope = {
  upTo: Number.MAX_SAFE_INTEGER,
  order: Number.MAX_SAFE_INTEGER,
  tell: true,
};

/** Releases the records of one id. */
export class Release {
  readonly #quorum: Quorum;
  readonly #ref: ReleaseParams;
  readonly #entry: Entry | undefined;
  readonly #scope: ReleaseScope;
  #plain: ReleaseRequest | null = null;

  constructor(quorum: Quorum, ref: ReleaseParams, entry: Entry | undefined, scope: ReleaseScope) {
    this.#quorum = quorum;
    this.#ref = ref;
    this.#entry = entry;
    this.#scope = scope;
  }

  /** Releases on these nodes, a set of bits. isSure: all of them confirmed it. */
  takeBack(nodes: number, then: (isSure: boolean) => void) {
    let missing = nodes;
    if (missing === 0) return then(true);
    let waiting = true;
    let failures = 0;
    const { clock, size } = this.#quorum;
    const finish = () => {
      if (!waiting) return;
      waiting = false;
      timer.cancel();
      then(missing === 0 && failures === 0);
    };
    const timer = clock.timer(this.#ref.patienceMs, finish, false);
    for (let node = 0; node < size; node++) {
      if ((nodes & (1 << node)) === 0) continue;
      this.#quorum.ask(node, this.#request(node), (answer) => {
        missing &= ~(1 << node);
        if (answer.kind === "failed") failures++;
        if (missing === 0) finish();
      });
    }
  }

  settle(done: (outcome: ReleaseOutcome) => void): void {
    const { size, terms } = this.#quorum;
    const answers: (NodeAnswer | null)[] = new Array(size).fill(null);
    let released = 0;
    let gone = 0;
    let why: Gone["why"] = "expired";
    broadcast(this.#quorum, {
      request: (node) => this.#request(node),
      patienceMs: this.#ref.patienceMs,
      heard: (node, answer) => {
        answers[node] = answer;
        if (answer.kind === "released") released++;
        else if (answer.kind === "gone") {
          gone++;
          if (answer.why !== "expired") why = answer.why;
        }
        return released >= terms.writeQuorum || gone > size - terms.writeQuorum;
      },
      ended: () => {
        if (released >= terms.writeQuorum) done({ kind: "released" });
        else if (gone > size - terms.writeQuorum) done({ kind: "gone", why });
        else done({ kind: "unanswered", effect: "unknown", absent: absentees(answers) });
      },
    });
  }

  #request(node: number): ReleaseRequest {
    const unanswered = (this.#entry?.unanswered[node] ?? 0) > 0;
    const { tombstoneMs } = this.#ref;
    if (unanswered) return this.#release(Math.max(TOMBSTONE_MS, tombstoneMs));
    this.#plain ??= this.#release(tombstoneMs);
    return this.#plain;
  }

  #release(tombstoneMs: number): ReleaseRequest {
    const { resource, id } = this.#ref;
    return { verb: "release", resource, id, tombstoneMs, ...this.#scope };
  }
}
