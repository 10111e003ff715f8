// Samples in Markdown are copies from examples/, which compile and run. A code block after a comment such
// as <!-- sample: examples/src/first.ts#acquire --> is the text between `// #region acquire` and
// `// #endregion` in that file.
import { read, repoFiles } from "./repo-files.js";

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

/** Every page, with its samples as they should be now. */
export function freshSamples(): ReadonlyMap<string, string> {
  return new Map(markdownFiles().map((path) => [path, refreshed(read(path))]));
}

/** The same text with every sample updated from its source. */
function refreshed(markdown: string): string {
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
