import type { Statements } from "./statements.js";

const FORCED_MS = 60_000;

/** Claims that were cancelled while one of their requests may still arrive. */
export class Tombstones {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  add(grantId: string, forMs: number): void {
    const { identity, now } = this.#statements;
    this.sweep();
    this.#statements.run("tombstoneInsert", grantId, identity.frame, now + forMs);
  }

  has(grantId: string): boolean {
    const { identity, now } = this.#statements;
    const found = this.#statements.get<{ frame: string; until: number }>("tombstoneFind", grantId);
    return found !== null && (found.frame !== identity.frame || found.until > now);
  }

  /**
   * Leaves a notification for a peer whose grant was ended by force: the grant's row is gone, so it
   * cannot show that. A peer that never reads the notification learns it at its next renewal. The
   * notification is stored as a tombstone and expires as one.
   */
  addForcedEnd(peer: string, resource: string): void {
    this.add(`${forcedRange(peer)[0]}${resource}`, FORCED_MS);
  }

  /** The resources on which this peer's grants were ended by force. Returns each of them once. */
  takeForcedEnds(peer: string): string[] {
    const range = forcedRange(peer);
    const found = this.#statements.all<{ grant_id: string }>("forcedOf", ...range);
    if (found.length > 0) this.#statements.run("forcedForget", ...range);
    return found.map(({ grant_id }) => grant_id.slice(range[0].length));
  }

  sweep(): void {
    this.#statements.run("tombstonesSweep", this.#statements.identity.frame, this.#statements.now);
  }
}

/** The range of keys for notifications of this peer. No grantId looks like one. */
function forcedRange(peer: string): [from: string, to: string] {
  return [`forced:${peer}:`, `forced:${peer};`];
}
