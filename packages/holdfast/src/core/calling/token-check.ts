import { ContractError } from "../../errors.js";
import type { Grant } from "../holding/grant.js";

const REMEMBERED = 512;

/** The last defence: a token that is not greater than an earlier one must not reach a user. */
export class TokenCheck {
  readonly #engineName: string;
  #last = new Map<string, bigint>();
  /** The map before #last. Together they hold the most recent resources. */
  #earlier = new Map<string, bigint>();

  constructor(engineName: string) {
    this.#engineName = engineName;
  }

  /** Compares exclusive grants only, because answers to shared claims may overtake each other. */
  check(grant: Grant): void {
    const { resource, firstToken } = grant;
    const last = this.#last.get(resource) ?? this.#earlier.get(resource) ?? -1n;
    if (grant.mode === "exclusive" && firstToken <= last) {
      throw new ContractError(
        `${this.#engineName} granted token ${firstToken} for "${resource}" after ${last}; ` +
          "tokens must rise with every grant",
        { resource },
      );
    }
    const highest = grant.tokens === 1 ? firstToken : firstToken + BigInt(grant.tokens - 1);
    this.#last.set(resource, highest > last ? highest : last);
    if (this.#last.size < REMEMBERED) return;
    this.#earlier = this.#last;
    this.#last = new Map();
  }
}
