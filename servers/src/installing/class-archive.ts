import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

/** Runs the program once with these arguments more, and ends it in order: java then writes the archive. */
type Train = (more: readonly string[]) => Promise<void>;

/**
 * With these arguments java maps the classes of a program, where it would read and check each of them: a third
 * of what the start of a small server costs. The archive is made once and kept in the folder that
 * HOLDFAST_TEMPLATES names; `npm test` names one. Where it fits neither java nor the jars, java goes on without it.
 */
export async function classArchive(files: readonly string[], train: Train): Promise<string[]> {
  const kept = process.env.HOLDFAST_TEMPLATES;
  if (kept === undefined) return [];
  const archive = join(kept, `${keyOf(files)}.jsa`);
  if (!existsSync(archive)) await make(archive, kept, train);
  return existsSync(archive) ? [`-XX:SharedArchiveFile=${archive}`] : [];
}

/** Appears whole or not at all: two tests may be the first at the same moment. */
async function make(archive: string, kept: string, train: Train): Promise<void> {
  mkdirSync(kept, { recursive: true });
  const own = mkdtempSync(join(kept, "new-"));
  try {
    const made = join(own, "archive");
    await train([`-XX:ArchiveClassesAtExit=${made}`]);
    if (existsSync(made)) renameSync(made, archive);
  } catch {
    // A java before 13 does not know the argument; a server that cannot start will say so when it is wanted.
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}

/** What tells one build of each file from another. */
function keyOf(files: readonly string[]): string {
  const words = files.map((file) => {
    const { mtimeMs, size } = statSync(file);
    return `${file} ${mtimeMs} ${size}`;
  });
  return createHash("sha256").update(words.join("\n")).digest("hex").slice(0, 16);
}
