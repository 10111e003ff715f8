import type { Tables } from "./tables.js";

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

  sweep(): void {
    this.#tables.run("tombstonesSweep", this.#tables.host.frame, this.#tables.now);
  }
}
