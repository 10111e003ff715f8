import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** An error with a sentence for the person at the keyboard. It is shown without a stack. */
export class SetupError extends Error {}

/** Runs a script's main function. A failure becomes a message and exit code 1. */
export async function script(main) {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    process.exit(1);
  }
}

/** Whether this module is the program that node runs. */
export function isMain(moduleUrl) {
  const asked = process.argv[1];
  return asked !== undefined && pathToFileURL(realpathSync(asked)).href === moduleUrl;
}
