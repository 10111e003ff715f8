import type { Tables } from "./statements.js";

const FORCED_MS = 60_000;

/** Claims that were given up while a request of theirs may still be on its way. */
export class Tombstones {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  bury(grantId: string, forMs: number): void {
    const { host, now } = this.#tables;
    this.sweep();
    this.#tables.run("tombstoneInsert", grantId, host.frame, now + forMs);
  }

  has(grantId: string): boolean {
    const { host, now } = this.#tables;
    const found = this.#tables.get<{ frame: string; until: number }>("tombstoneFind", grantId);
    return found !== null && (found.frame !== host.frame || found.until > now);
  }

  /**
   * Leaves word for a peer that a grant of its was ended by force: its row is gone, and would tell nobody.
   * A peer that never comes for it finds out by its next renewal; the word goes with the tombstones.
   */
  tellForced(peer: string, resource: string): void {
    this.bury(`${forcedOf(peer)[0]}${resource}`, FORCED_MS);
  }

  /** Where grants of this peer were ended by force, told once. */
  takeForced(peer: string): string[] {
    const range = forcedOf(peer);
    const found = this.#tables.all<{ grant_id: string }>("forcedOf", ...range);
    if (found.length > 0) this.#tables.run("forcedForget", ...range);
    return found.map(({ grant_id }) => grant_id.slice(range[0].length));
  }

  sweep(): void {
    this.#tables.run("tombstonesSweep", this.#tables.host.frame, this.#tables.now);
  }
}

/** The first and last of what could be told to this peer, in the order of keys. No grantId looks like it. */
function forcedOf(peer: string): [from: string, to: string] {
  return [`forced:${peer}:`, `forced:${peer};`];
}
