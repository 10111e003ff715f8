import { UsageError } from "../errors.js";
import { type AcquireOptions, withDefaults } from "../options.js";

/** What a recipe decides by itself is not the caller's to say. */
export type RecipeOptions = Omit<AcquireOptions, "mode" | "limit">;
export type RecipeTryOptions = Omit<RecipeOptions, "waitMs" | "retry">;
/** For every acquire of one recipe; the connection's defaults lie below. */
export type RecipeDefaults = Omit<RecipeOptions, "signal">;

/** One acquire's options over the recipe's defaults. */
export function merge(
  options: RecipeOptions,
  defaults: RecipeDefaults,
  decided: Pick<AcquireOptions, "mode" | "limit">,
  recipe: string,
): AcquireOptions {
  for (const name of ["mode", "limit"]) {
    if (!(name in options) && !(name in defaults)) continue;
    throw new UsageError(`${recipe} chooses the ${name} itself; leave it out, or use acquire`);
  }
  return { ...withDefaults(options, defaults), ...decided };
}

/** Who does not wait has no use for the defaults of those who do. */
export function withoutPatience(defaults: RecipeDefaults): RecipeDefaults {
  const { waitMs: _, retry: __, ...rest } = defaults;
  return rest;
}
