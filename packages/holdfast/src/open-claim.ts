import type { Backend } from "./backend.js";
import type { Call, Claim } from "./engine.js";
import { EngineError, HoldfastError, UsageError } from "./errors.js";
import { Doubt } from "./grant.js";

/** A claim, and what the backend may know of it. Every request about it leaves through here. */
export class OpenClaim {
  readonly claim: Claim;
  readonly doubt = new Doubt();
  /** Whether the backend may know of it. */
  exposed = false;
  readonly #backend: Backend;
  readonly #timeoutMs: number;

  constructor(backend: Backend, claim: Claim, timeoutMs: number) {
    this.#backend = backend;
    this.claim = claim;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * A call may have to wait for the event loop to turn; one that nobody waits for any more is not sent
   * at all, and nobody is told how one ended that nobody waits for.
   */
  send<T>(
    isAwaited: () => boolean,
    ask: (call: Call) => Promise<T>,
    onAnswer: (answer: T) => void,
    onFailure: (error: unknown) => void,
  ): void {
    const before = this.exposed;
    let sent = false;
    this.#backend.ask(
      this.#timeoutMs,
      (call) => {
        if (!isAwaited()) return null;
        this.exposed = true;
        this.doubt.unanswered++;
        sent = true;
        return ask(call);
      },
      (answer) => {
        this.doubt.unanswered--;
        if (isAwaited()) onAnswer(answer);
      },
      (error) => {
        const effect = sent && !withoutEffect(error);
        if (sent) this.doubt.unanswered--;
        if (effect) this.doubt.lost = true;
        if (!isAwaited()) return;
        if (!effect) this.exposed = before;
        onFailure(error);
      },
    );
  }

  /** The grant may exist although nobody will use it: it must not block others for a whole ttl. */
  giveUp(): void {
    if (!this.exposed) return;
    this.exposed = false;
    this.#backend.abandon(this.claim, this.doubt.exists, this.#timeoutMs);
  }
}

/** Errors that vouch for it that nothing changed at the backend. */
function withoutEffect(error: unknown): boolean {
  if (error instanceof EngineError) return error.effect === "none";
  return (
    error instanceof UsageError || (error instanceof HoldfastError && error.code !== "CONTRACT")
  );
}
