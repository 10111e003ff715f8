import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** What went wrong, in a sentence for the person at the keyboard. Needs no stack. */
export class SetupError extends Error {}

/** Runs a script's main function; its failure becomes a message and an exit code. */
export async function script(main) {
  try {
    await main();
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    process.exit(1);
  }
}

/** Whether this module is the one that node was asked to run. */
export function isMain(moduleUrl) {
  const asked = process.argv[1];
  return asked !== undefined && pathToFileURL(realpathSync(asked)).href === moduleUrl;
}
