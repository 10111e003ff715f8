import { ContractError } from "../../errors.js";
import type { Grant } from "../holding/grant.js";

const REMEMBERED = 512;

/** The last line of defence: a token that went back must not reach a user as if it were good. */
export class TokenCheck {
  readonly #engineName: string;
  #last = new Map<string, bigint>();
  /** Those of the resources before: the two together are the most recent ones. */
  #earlier = new Map<string, bigint>();

  constructor(engineName: string) {
    this.#engineName = engineName;
  }

  /** Compares exclusive grants only; the answers to shared ones may overtake each other on their way. */
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
