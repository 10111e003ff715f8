import { kindOf, show, UsageError } from "../../errors.js";
import { orMeant } from "./did-you-mean.js";

/** The names of all options of a type; the compiler sees to it that none is missing. */
export type Known<Options> = { readonly [Name in keyof Options]-?: true };

/** What a factory needs most: the option's name, and how that itself is recognised where it was handed in. */
export interface Chief {
  readonly option: string;
  isOne?(given: object): boolean;
}

/** Options that nobody reads are mistakes: a misspelt one would silently change nothing. */
export function refuseUnknown<Options extends object>(
  options: Options,
  known: Known<Options>,
  taker: string,
): void {
  if (typeof options !== "object" || options === null) {
    throw new UsageError(`${taker} takes an object of options, got ${kindOf(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name)) {
      const names = Object.keys(known);
      throw new UsageError(
        `${taker} has no option ${show(name)}; it knows ${names.join(", ")}${orMeant(name, names)}`,
      );
    }
    // Some options would take it for their default, and others for 0.
    if (options[name as keyof Options] === null) {
      throw new UsageError(`${name} is null; only undefined means that it is left out`);
    }
  }
}

/** The options of a factory. Who hands in the client itself, or a URL, is told where it goes. */
export function refuseForeign<Options extends object>(
  options: Options,
  known: Known<Options>,
  taker: string,
  { option, isOne }: Chief,
): void {
  const form = `${taker}({ ${option} })`;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const got = kindOf(options);
    throw new UsageError(`${taker} takes an object of options, like ${form}, got ${got}`);
  }
  if (isOne?.(options)) {
    throw new UsageError(`${taker} got ${kindOf(options)} in place of its options; write ${form}`);
  }
  refuseUnknown(options, known, taker);
}
