import { type Known, refuseUnknown } from "../core/input/known-options.js";
import { UsageError } from "../errors.js";
import { type AcquireOptions, COMMON_OPTIONS, withDefaults } from "../options.js";

/** What a recipe decides by itself is not the caller's to say. */
export type RecipeOptions = Omit<AcquireOptions, "mode" | "limit">;
export type RecipeTryOptions = Omit<RecipeOptions, "waitMs" | "retry">;
/** For every acquire of one recipe; the connection's defaults lie below. */
export type RecipeDefaults = Omit<RecipeOptions, "signal">;

export const DEFAULTS: Known<RecipeDefaults> = { ...COMMON_OPTIONS, waitMs: true, retry: true };
const OPTIONS: Known<RecipeOptions> = { ...DEFAULTS, signal: true };

/** When the recipe is made: wrong defaults are a mistake of whoever wrote them. */
export function checkDefaults<Options extends RecipeDefaults>(
  defaults: Options,
  known: Known<Options>,
  recipe: string,
): void {
  refuseDecided(defaults, recipe);
  refuseUnknown(defaults, known, recipe);
}

/** One acquire's options over the recipe's defaults. */
export function merge(
  options: RecipeOptions,
  defaults: RecipeDefaults,
  decided: Pick<AcquireOptions, "mode" | "limit">,
  recipe: string,
): AcquireOptions {
  refuseDecided(options, recipe);
  refuseUnknown(options, OPTIONS, recipe);
  return { ...withDefaults(options, defaults), ...decided };
}

function refuseDecided(options: object, recipe: string): void {
  for (const name of ["mode", "limit"]) {
    if (!Object.hasOwn(options ?? {}, name)) continue;
    throw new UsageError(`${recipe} chooses the ${name} itself; leave it out, or use acquire`);
  }
}

/** Who does not wait has no use for the defaults of those who do. */
export function withoutPatience(defaults: RecipeDefaults): RecipeDefaults {
  const { waitMs: _, retry: __, ...rest } = defaults;
  return rest;
}
