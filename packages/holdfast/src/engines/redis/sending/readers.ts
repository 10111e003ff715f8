import type { Claim, Failed, Gone, Granted, Queued } from "../../../engine.js";
import type { SentHeartbeats as Beats } from "../../../engine-kit/sent-heartbeats.js";
import { EngineError, HoldfastError, UsageError } from "../../../errors.js";
import { enqueued } from "../protocol/decode.js";
import { failed } from "../protocol/failure.js";
import type { Reader } from "./operation.js";

/** Of many: one that cannot be read does not decide for the others. */
export function readOne<R, A>(
  answer: unknown,
  ref: R,
  read: (answer: unknown, ref: R) => A,
): A | Failed {
  try {
    return answer instanceof HoldfastError ? failed(answer) : read(answer, ref);
  } catch (error) {
    return failed(error);
  }
}

/** Tells of the only one of a batch. */
export class OnlyReader<R, A> implements Reader<readonly (A | Failed)[]> {
  readonly #ref: R;
  readonly #read: (answer: unknown, ref: R) => A;

  constructor(ref: R, read: (answer: unknown, ref: R) => A) {
    this.#ref = ref;
    this.#read = read;
  }

  read(answer: unknown): readonly (A | Failed)[] {
    return [this.#read(answer, this.#ref)];
  }

  fail(error: unknown): readonly (A | Failed)[] {
    return [failed(error)];
  }
}

/** Whoever stands in line is known to the beats from before the claim is sent. */
export class EnqueueReader implements Reader<Granted | Queued | Gone> {
  readonly #beats: Beats;
  readonly #claim: Claim;
  readonly #startedAt: number;
  readonly #isNew: boolean;
  readonly #doubt: () => void;

  constructor(beats: Beats, claim: Claim, startedAt: number, isNew: boolean, doubt: () => void) {
    this.#beats = beats;
    this.#claim = claim;
    this.#startedAt = startedAt;
    this.#isNew = isNew;
    this.#doubt = doubt;
  }

  read(raw: unknown, once: boolean): Granted | Queued | Gone {
    if (!once) this.#doubt();
    const answer = enqueued(raw, this.#claim, this.#startedAt);
    if (answer.kind !== "queued") this.#beats.forget(this.#claim.grantId);
    return answer;
  }

  fail(error: unknown): never {
    // One that was refused stands in no line, unless an earlier request of the same claim does.
    if (this.#isNew && isRefusal(error)) this.#beats.forget(this.#claim.grantId);
    throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof UsageError || (error instanceof EngineError && error.effect === "none");
}
