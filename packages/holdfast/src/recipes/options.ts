import { type Known, refuseUnknown } from "../core/input/known-options.js";
import { UsageError } from "../errors.js";
import { type AcquireOptions, COMMON_OPTIONS, withDefaults } from "../options.js";

/** Without the options that a recipe decides itself. */
export type RecipeOptions = Omit<AcquireOptions, "mode" | "limit">;
export type RecipeTryOptions = Omit<RecipeOptions, "waitMs" | "retry">;
/** Defaults for every acquire of one recipe; they override the connection's defaults. */
export type RecipeDefaults = Omit<RecipeOptions, "signal">;

export const DEFAULTS: Known<RecipeDefaults> = { ...COMMON_OPTIONS, waitMs: true, retry: true };
const OPTIONS: Known<RecipeOptions> = { ...DEFAULTS, signal: true };

/** Called when the recipe is made, so that wrong defaults fail there. */
export function checkDefaults<Options extends RecipeDefaults>(
  defaults: Options,
  known: Known<Options>,
  recipe: string,
): void {
  refuseDecided(defaults, recipe);
  refuseUnknown(defaults, known, recipe);
}

/** Merges one acquire's options with the recipe's defaults. */
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

/** The defaults without waitMs and retry, for tryAcquire, which does not wait. */
export function withoutWaiting(defaults: RecipeDefaults): RecipeDefaults {
  const { waitMs: _, retry: __, ...rest } = defaults;
  return rest;
}
