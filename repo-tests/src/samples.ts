// Samples in Markdown are copies from examples/, which compile and run. A code block after a comment such
// as <!-- sample: examples/src/first.ts#acquire --> is the text between `// #region acquire` and
// `// #endregion` in that file. `node repo-tests/dist/samples.js --write` copies, `--check` compares.
import { realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { read, repoFiles, root } from "./repo-files.js";

const SAMPLE = /^<!-- sample: (\S+?)#(\S+) -->\n+```(\w*)\n([\s\S]*?)^```$/gm;

export interface Sample {
  /** "examples/src/first.ts#acquire" */
  readonly source: string;
  readonly quoted: string;
  readonly actual: string;
}

export function samplesIn(markdown: string): Sample[] {
  return [...markdown.matchAll(SAMPLE)].map(([, path = "", region = "", , quoted = ""]) => ({
    source: `${path}#${region}`,
    quoted,
    actual: regionOf(read(path), region, path),
  }));
}

/** The same text with every sample updated from its source. */
export function refreshed(markdown: string): string {
  return markdown.replace(SAMPLE, (_, path: string, region: string, language: string) => {
    const actual = regionOf(read(path), region, path);
    return `<!-- sample: ${path}#${region} -->\n\`\`\`${language}\n${actual}\`\`\``;
  });
}

/** The lines between the two marks, without their common indentation. */
export function regionOf(source: string, region: string, path: string): string {
  const lines = source.split("\n");
  const start = lines.findIndex((line) => line.trim() === `// #region ${region}`);
  const length = lines.slice(start + 1).findIndex((line) => line.trim() === "// #endregion");
  if (start < 0 || length < 0) throw new Error(`${path} has no region ${region}`);
  const body = lines.slice(start + 1, start + 1 + length);
  const indents = body.filter((line) => line !== "").map((line) => line.search(/\S/));
  const indent = Math.min(...indents);
  return body.map((line) => `${line.slice(indent)}\n`).join("");
}

export function markdownFiles(): string[] {
  return repoFiles().filter((path) => path.endsWith(".md"));
}

if (import.meta.url === pathToFileURL(realpathSync(process.argv[1] ?? "/")).href) {
  const stale = markdownFiles().filter((path) => refreshed(read(path)) !== read(path));
  if (process.argv.includes("--write")) {
    for (const path of stale) writeFileSync(join(root, path), refreshed(read(path)));
  } else if (stale.length > 0) {
    console.error(
      `Stale samples, run node repo-tests/dist/samples.js --write: ${stale.join(", ")}`,
    );
    process.exitCode = 1;
  }
}
