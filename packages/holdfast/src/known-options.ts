import { show, UsageError } from "./errors.js";

/** The names of all options of a type; the compiler sees to it that none is missing. */
export type Known<Options> = { readonly [Name in keyof Options]-?: true };

/** Options that nobody reads are mistakes: a misspelt one would silently change nothing. */
export function refuseUnknown<Options extends object>(
  options: Options,
  known: Known<Options>,
  taker: string,
): void {
  if (typeof options !== "object" || options === null) {
    throw new UsageError(`${taker} takes an object of options, got ${show(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (Object.hasOwn(known, name)) continue;
    const names = Object.keys(known).join(", ");
    throw new UsageError(`${taker} has no option ${show(name)}; it knows ${names}`);
  }
}
