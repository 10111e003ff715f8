import { UsageError } from "holdfast";

/** Which engine: the option, else the environment, else a file in the user's state folder. */
export function chosenUrl(given: string | undefined, env: NodeJS.ProcessEnv): string {
  if (given === "") throw new UsageError("--url is empty; it looks like sqlite:locks.db");
  return given ?? (env.HOLDFAST_URL || "sqlite:");
}
