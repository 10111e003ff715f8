import type { Statements } from "./statements.js";

const FORCED_MS = 60_000;

/** Claims that were given up while a request of theirs may still be on its way. */
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
   * Leaves word for a peer that a grant of its was ended by force: its row is gone, and would tell nobody.
   * A peer that never comes for it finds out by its next renewal; the word goes with the tombstones.
   */
  addForcedNotice(peer: string, resource: string): void {
    this.add(`${forcedRange(peer)[0]}${resource}`, FORCED_MS);
  }

  /** Where grants of this peer were ended by force, told once. */
  takeForcedNotices(peer: string): string[] {
    const range = forcedRange(peer);
    const found = this.#statements.all<{ grant_id: string }>("forcedOf", ...range);
    if (found.length > 0) this.#statements.run("forcedForget", ...range);
    return found.map(({ grant_id }) => grant_id.slice(range[0].length));
  }

  sweep(): void {
    this.#statements.run("tombstonesSweep", this.#statements.identity.frame, this.#statements.now);
  }
}

/** The first and last of what could be told to this peer, in the order of keys. No grantId looks like it. */
function forcedRange(peer: string): [from: string, to: string] {
  return [`forced:${peer}:`, `forced:${peer};`];
}
