import assert from "node:assert/strict";
import { test } from "node:test";
import { LIBRARY, read, repoFiles, shippedSources } from "../repo-files.js";
import { importsOf, lineAt, parse } from "./source-text.js";

const TIME = [
  /\bDate\s*\.\s*now\b/g,
  /\bnew\s+Date\s*(\(\s*\)|;)/g,
  /(?<!\bnew\s+)\bDate\s*\(/g,
  /\bperformance\s*\.\s*now\b/g,
  /\bhrtime\b/g,
  /\buptime\s*\(/g,
  /\bset(Timeout|Interval)\b/g,
  /\bAbortSignal\s*\.\s*timeout\b/g,
];
const shipped = shippedSources(LIBRARY);

test("only clock.ts reads time or sets timers", () => {
  const others = shipped.filter((path) => path !== `${LIBRARY}/core/runtime/clock.ts`);
  assert.deepEqual(occurrences(others, TIME), []);
  const timers = others.filter((path) =>
    importsOf(read(path)).some(({ specifier }) => /^(node:)?timers/.test(specifier)),
  );
  assert.deepEqual(timers, []);
  // The rule works only if it would catch the one exempt file.
  assert.notDeepEqual(occurrences([`${LIBRARY}/core/runtime/clock.ts`], TIME), []);
});

test("nothing uses Math.random, whose values can be guessed and repeat", () => {
  const everything = repoFiles().filter((path) => /\.(ts|mjs)$/.test(path));
  assert.deepEqual(occurrences(everything, [/\bMath\s*\.\s*random\b/g]), []);
});

test("only errors.ts declares errors", () => {
  const others = shippedSources("packages").filter((path) => path !== `${LIBRARY}/errors.ts`);
  const declared = [/\bextends\s+\w*Error\b(?!\s*\?)/g];
  assert.deepEqual(occurrences(others, declared), []);
  assert.notDeepEqual(occurrences([`${LIBRARY}/errors.ts`], declared), []);
});

test("the library never prints", () => {
  assert.deepEqual(
    occurrences(shipped, [/\bconsole\s*\./g, /\bprocess\s*\.\s*std(out|err)\b/g]),
    [],
  );
});

/** "path:line text" for every match outside comments and strings. */
function occurrences(paths: readonly string[], patterns: readonly RegExp[]): string[] {
  return paths.flatMap((path) => {
    const { bare } = parse(read(path));
    return patterns
      .flatMap((pattern) => [...bare.matchAll(pattern)])
      .map((match) => `${path}:${lineAt(bare, match.index)} ${match[0]}`);
  });
}
