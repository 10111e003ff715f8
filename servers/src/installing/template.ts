import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { runOnce } from "../running/unprivileged.js";

/**
 * Fills a server's data folder: by the command that makes empty data, which takes a second or two, or by a copy of
 * what that command made the first time. Copies are kept in the folder that HOLDFAST_TEMPLATES names; `npm test`
 * names one. Another build of the server has data of its own.
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

/** The command without its own folder, and what tells one build of each program from another. */
function keyOf(home: string, command: readonly string[]): string {
  const words = command.map((word) => {
    const isProgram = word.startsWith("/") && !word.startsWith(home) && existsSync(word);
    if (!isProgram) return word.replaceAll(home, "");
    const { mtimeMs, size } = statSync(word);
    return `${word} ${mtimeMs} ${size}`;
  });
  return createHash("sha256").update(words.join("\n")).digest("hex").slice(0, 16);
}

/** Appears whole or not at all: two tests may be the first at the same moment. */
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
