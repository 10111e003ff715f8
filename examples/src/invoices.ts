import { FencedOutError } from "holdfast";

/**
 * Where the data lives. It keeps the greatest token it has seen and refuses smaller ones, so a holder
 * that was paused for too long cannot overwrite what its successor wrote. In a database this is a
 * column, and `where token <= ?` in the update.
 */
export class Invoices {
  readonly #rows = new Map<number, { readonly status: string; readonly token: bigint }>();

  async save(id: number, status: string, token: bigint): Promise<void> {
    const highest = this.#rows.get(id)?.token ?? 0n;
    if (token < highest) {
      throw new FencedOutError(`invoice ${id} was written with token ${highest}, not ${token}`);
    }
    this.#rows.set(id, { status, token });
  }

  status(id: number): string | undefined {
    return this.#rows.get(id)?.status;
  }
}
