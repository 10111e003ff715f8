import type { Claim } from "../../../engine.js";
import type { WaiterRow } from "./rows.js";
import type { Tables } from "./statements.js";

/** Those who wait, in the order in which they came. */
export class Line {
  readonly #tables: Tables;

  constructor(tables: Tables) {
    this.#tables = tables;
  }

  find(grantId: string): WaiterRow | null {
    return this.#tables.get<WaiterRow>("waiterFind", grantId);
  }

  head(resource: string): WaiterRow | null {
    return this.#tables.get<WaiterRow>("waiterHead", resource);
  }

  all(resource: string): readonly Pick<WaiterRow, "grant_id" | "mode" | "label">[] {
    return this.#tables.all<WaiterRow>("waitersOf", resource);
  }

  /** How many are before this one. */
  position({ resource, seq }: WaiterRow): number {
    return this.#tables.one<{ position: number }>("waiterPosition", resource, seq).position;
  }

  join(claim: Claim): void {
    const { resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
    this.#tables.run(
      "waiterInsert",
      ...[resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label, this.#tables.self],
    );
  }

  /** Whether there was anybody to take out. */
  leave(grantId: string): boolean {
    return this.#tables.run("waiterDelete", grantId) > 0;
  }

  /** The one limit of all shared claims in line; undefined where there are none. */
  limit(resource: string): number | null | undefined {
    return this.#tables.get<WaiterRow>("waitersLimit", resource)?.share_limit;
  }
}
