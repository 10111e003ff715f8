import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { runOnce } from "../running/unprivileged.js";

/**
 * Fills a server's data folder, either with the command that creates empty data, which takes a
 * second or two, or with a copy of what that command created before. The folder HOLDFAST_TEMPLATES
 * keeps the copies; `npm test` sets it. Each build of a server has its own copy.
 */
export function fillWithEmptyData(data: string, command: readonly [string, ...string[]]): void {
  const home = dirname(data);
  const kept = process.env.HOLDFAST_TEMPLATES;
  const template = kept === undefined ? null : join(kept, keyOf(home, command));
  if (template !== null && existsSync(template)) {
    runOnce(["cp", "-a", `${template}/.`, data], home);
  } else {
    runOnce(command, home);
    if (template !== null) keep(data, template);
  }
}

/** The command without its data folder, and what distinguishes builds of its program. */
function keyOf(home: string, command: readonly string[]): string {
  const words = command.map((word) => {
    const isProgram = word.startsWith("/") && !word.startsWith(home) && existsSync(word);
    if (!isProgram) return word.replaceAll(home, "");
    const { mtimeMs, size } = statSync(word);
    return `${word} ${mtimeMs} ${size}`;
  });
  return createHash("sha256").update(words.join("\n")).digest("hex").slice(0, 16);
}

/** Creates the copy atomically, because two tests may need it first at the same moment. */
function keep(data: string, template: string): void {
  const kept = dirname(template);
  mkdirSync(kept, { recursive: true });
  const own = mkdtempSync(join(kept, "new-"));
  try {
    runOnce(["cp", "-a", data, join(own, "data")], kept);
    renameSync(join(own, "data"), template);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EEXIST" && code !== "ENOTEMPTY") throw error;
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}
