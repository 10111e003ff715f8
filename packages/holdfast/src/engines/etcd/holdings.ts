import { systemClock, type Timer } from "../../clock.js";
import type { GrantRef } from "../../engine.js";
import { emit } from "../../events.js";
import type { KeyValue } from "./requests.js";
import type { EndOfKey } from "./watches.js";

const AGAIN_MS = 500;
const MOST_TRIES = 5;

/** Something of ours in etcd that ends unless somebody goes on asking for it. */
interface Kept {
  readonly ref: GrantRef;
  self: KeyValue;
  /** On the engine's clock. */
  until: number;
  tries: number;
}

export interface Holding extends Kept {
  readonly kind: "grant";
  readonly lockDelayMs: number;
  /** The lease of its mark, where it has one. */
  marker: string | null;
}

export interface Waiting extends Kept {
  readonly kind: "waiter";
  /** How long it is kept without being asked after. */
  readonly graceMs: number;
  position: number;
  /** From the engine's clock to core's. */
  offsetMs: number;
  interests: readonly EndOfKey[];
}

/**
 * What this process holds and waits for. Grants of one life share a lease, which the others keep alive;
 * so what nobody renews any more, or asks after any more, has to be taken away when its own time is over.
 */
export class Holdings {
  readonly #kept = new Map<string, Holding | Waiting>();
  readonly #end: (kept: Holding | Waiting) => Promise<void>;
  #timer: Timer | null = null;
  #wakeAt = Infinity;

  constructor(end: (kept: Holding | Waiting) => Promise<void>) {
    this.#end = end;
  }

  get waiters(): Waiting[] {
    return [...this.#kept.values()].filter((kept) => kept.kind === "waiter");
  }

  keep(kept: Holding | Waiting): void {
    this.#kept.set(kept.ref.grantId, kept);
    this.#wake(kept.until);
  }

  has({ grantId }: GrantRef): boolean {
    return this.#kept.has(grantId);
  }

  grant({ grantId }: GrantRef): Holding | null {
    const kept = this.#kept.get(grantId);
    return kept?.kind === "grant" ? kept : null;
  }

  waiter({ grantId }: GrantRef): Waiting | null {
    const kept = this.#kept.get(grantId);
    return kept?.kind === "waiter" ? kept : null;
  }

  find(resource: string, created: bigint): Holding | null {
    for (const kept of this.#kept.values()) {
      const same = kept.ref.resource === resource && kept.self.created === created;
      if (same && kept.kind === "grant") return kept;
    }
    return null;
  }

  /** A waiter that was asked after at this instant. */
  extend(waiting: Waiting, at: number): void {
    waiting.until = Math.max(waiting.until, at + waiting.graceMs);
    waiting.tries = 0;
  }

  /** Gives what was forgotten. */
  forget({ grantId }: GrantRef): Holding | Waiting | null {
    const kept = this.#kept.get(grantId) ?? null;
    this.#kept.delete(grantId);
    if (this.#kept.size === 0) this.close();
    return kept;
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#wakeAt = Infinity;
  }

  #wake(at: number): void {
    if (at >= this.#wakeAt) return;
    this.#timer?.cancel();
    this.#wakeAt = at;
    this.#timer = systemClock.timer(at - systemClock.now(), () => this.#look(), false);
  }

  #look(): void {
    this.close();
    const now = systemClock.now();
    let next = Infinity;
    for (const kept of this.#kept.values()) {
      if (kept.until <= now) this.#over(kept, now);
      next = Math.min(next, kept.until);
    }
    if (next < Infinity) this.#wake(next);
  }

  /** Out of reach, it is tried again a few times; the lease that it hangs on ends as well meanwhile. */
  #over(kept: Holding | Waiting, now: number): void {
    if (kept.tries++ >= MOST_TRIES) {
      this.forget(kept.ref);
      return;
    }
    kept.until = now + AGAIN_MS;
    this.#end(kept).then(
      () => {
        if (this.#kept.get(kept.ref.grantId) === kept) this.forget(kept.ref);
      },
      (error: unknown) =>
        emit("failed", () => ({ during: "expiry", error, resource: kept.ref.resource })),
    );
  }
}
