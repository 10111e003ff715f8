import { kindOf, show, UsageError } from "../../errors.js";
import { orMeant } from "./did-you-mean.js";

/** The names of all options of a type. The compiler ensures that none is missing. */
export type Known<Options> = { readonly [Name in keyof Options]-?: true };

/**
 * The main option of a factory: its name, and how to recognise its value when that is handed in
 * alone.
 */
export interface MainOption {
  readonly option: string;
  isOne?(given: object): boolean;
}

/** Says where an unknown option belongs, like "; a URL goes to connect(url)"; "" if unknown. */
export type Advice = (name: string) => string;

const A_URL = ["url", "uri", "connectionstring", "connectionurl"];
const aboutUrl: Advice = (name) =>
  A_URL.includes(name.toLowerCase()) ? "; a URL goes to connect(url)" : "";

/** An unknown option is a mistake: a misspelt one would silently change nothing. */
export function refuseUnknown<Options extends object>(
  options: Options,
  known: Known<Options>,
  taker: string,
  advice: Advice = () => "",
): void {
  if (typeof options !== "object" || options === null) {
    throw new UsageError(`${taker} takes an object of options, got ${kindOf(options)}`);
  }
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name)) {
      const names = Object.keys(known);
      const hint = advice(name) || orMeant(name, names);
      throw new UsageError(
        `${taker} has no option ${show(name)}; it knows ${names.join(", ")}${hint}`,
      );
    }
    // Some options would treat null as their default, and others as 0.
    if (options[name as keyof Options] === null) {
      throw new UsageError(`${name} is null; only undefined means that it is left out`);
    }
  }
}

/**
 * Checks the options of a factory. If the client itself or a URL was handed in, the error says
 * where it goes.
 */
export function refuseForeign<Options extends object>(
  options: Options,
  known: Known<Options>,
  taker: string,
  { option, isOne }: MainOption,
): void {
  const form = `${taker}({ ${option} })`;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    const got = kindOf(options);
    throw new UsageError(`${taker} takes an object of options, like ${form}, got ${got}`);
  }
  if (isOne?.(options)) {
    throw new UsageError(`${taker} got ${kindOf(options)} in place of its options; write ${form}`);
  }
  refuseUnknown(options, known, taker, aboutUrl);
}
