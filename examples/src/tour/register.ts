import { FencedOutError } from "holdfast";

/**
 * The place where the data lives, here a variable of the director. It remembers the greatest token
 * and refuses smaller ones: this is the half of fencing that no lock can do for you.
 */
export class Register {
  highest = 0n;
  value = "nothing";

  write(token: bigint, value: string): void {
    if (token < this.highest) {
      throw new FencedOutError(`token ${token} is older than ${this.highest}`);
    }
    this.highest = token;
    this.value = value;
  }
}
