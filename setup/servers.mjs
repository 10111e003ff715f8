import { join } from "node:path";
import { excerpt, runQuietly } from "./progress.mjs";
import { root } from "./workspace.mjs";

const TIMEOUT_MS = 15 * 60_000;

/**
 * Installs the servers that tests use and the programs of the bench. Returns the reasons of a
 * failure.
 */
export async function ensureServers() {
  const program = join(root, "servers/dist/installing/ensure-all.js");
  const { code, output } = await runQuietly("installing servers", process.execPath, [program], {
    timeoutMs: TIMEOUT_MS,
  });
  return code === 0 ? [] : [excerpt(output)];
}
