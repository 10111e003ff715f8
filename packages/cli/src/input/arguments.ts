import { parseArgs } from "node:util";
import { UsageError } from "holdfast";
import { orMeant } from "./did-you-mean.js";

export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly short?: string;
}

export interface Arguments<Name extends string> {
  readonly texts: ReadonlyMap<Name, string>;
  readonly flags: ReadonlySet<Name>;
  readonly positionals: readonly string[];
}

/** Reads options in any order. The built-in parser splits; the refusals here say what to write. */
export function readArguments<Name extends string>(
  args: readonly string[],
  specs: Readonly<Record<Name, OptionSpec>>,
  verb: string,
): Arguments<Name> {
  const { tokens } = parseArgs({
    args: [...args],
    options: specs,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const texts = new Map<Name, string>();
  const flags = new Set<Name>();
  const positionals: string[] = [];
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const name = known(token.name, token.rawName, specs, verb);
    if (specs[name].type === "boolean") {
      if (token.value !== undefined) {
        throw new UsageError(`--${name} takes no value, got ${JSON.stringify(token.value)}`);
      }
      flags.add(name);
    } else {
      texts.set(name, textOf(name, token.value, token.inlineValue === true));
    }
  }
  return { texts, flags, positionals };
}

function known<Name extends string>(
  name: string,
  rawName: string,
  specs: Readonly<Record<Name, OptionSpec>>,
  verb: string,
): Name {
  if (Object.hasOwn(specs, name)) return name as Name;
  const meant = orMeant(
    rawName,
    Object.keys(specs).map((candidate) => `--${candidate}`),
  );
  throw new UsageError(
    `${verb} has no option ${rawName}.${meant} See holdfast ${verb} --help; ` +
      "options of the command itself go after --",
  );
}

/** `--label --ttl 5s` is a forgotten value far more often than a label called "--ttl". */
function textOf(name: string, value: string | undefined, inline: boolean): string {
  if (value !== undefined && (inline || !/^-./.test(value))) return value;
  const got =
    value === undefined ? "nothing" : `${value}; if you mean it, write --${name}=${value}`;
  throw new UsageError(`--${name} needs a value, got ${got}`);
}
