import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { ensureBuilt } from "./build.mjs";
import { ensureInstalled } from "./install.mjs";
import { root } from "./workspace.mjs";

/**
 * Sets up, then runs the given program in this process. Without a child process, the terminal, the
 * signals and the exit code belong to the program itself.
 */
export async function runHere(program, args) {
  await setUp();
  const path = join(root, program);
  process.argv = [process.execPath, path, ...args];
  await import(pathToFileURL(path).href);
}

/** Installs the packages and compiles the sources, where either is needed. */
export async function setUp() {
  await ensureInstalled();
  await ensureBuilt();
}
