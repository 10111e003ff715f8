import type { Claim } from "../../../engine.js";
import type { WaiterRow } from "./rows.js";
import type { Statements } from "./statements.js";

/** The waiters of each resource, in order of arrival. */
export class Queue {
  readonly #statements: Statements;

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  find(grantId: string): WaiterRow | null {
    return this.#statements.get<WaiterRow>("waiterFind", grantId);
  }

  head(resource: string): WaiterRow | null {
    return this.#statements.get<WaiterRow>("waiterHead", resource);
  }

  all(resource: string): readonly Pick<WaiterRow, "grant_id" | "mode" | "label">[] {
    return this.#statements.all<WaiterRow>("waitersOf", resource);
  }

  /** How many waiters are ahead of this one. */
  position({ resource, seq }: WaiterRow): number {
    return this.#statements.one<{ position: number }>("waiterPosition", resource, seq).position;
  }

  join(claim: Claim): void {
    const { resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
    this.#statements.run(
      "waiterInsert",
      ...[resource, grantId, mode, limit, tokens, ttlMs, lockDelayMs, label, this.#statements.self],
    );
  }

  /** Removes a waiter; false if it was not in the queue. */
  leave(grantId: string): boolean {
    return this.#statements.run("waiterDelete", grantId) > 0;
  }

  /** The one limit of all shared claims in the queue; undefined if it has none. */
  limit(resource: string): number | null | undefined {
    return this.#statements.get<WaiterRow>("waitersLimit", resource)?.share_limit;
  }
}
