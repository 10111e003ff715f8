import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNone } from "../findings.js";
import { LIBRARY, read, repoFiles, shippedSources } from "../repo-files.js";
import { importsOf, lineAt, parse } from "./source-text.js";

const CLOCK = `${LIBRARY}/core/runtime/clock.ts`;
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
  const others = shipped.filter((path) => path !== CLOCK);
  const todo = `use systemClock or sleep of ${CLOCK}, so that a ManualClock can take its place`;
  assertNone(occurrences(others, TIME), todo);
  const timers = others.filter((path) =>
    importsOf(read(path)).some(({ specifier }) => /^(node:)?timers/.test(specifier)),
  );
  assertNone(timers, todo);
  // The rule works only if it would catch the one exempt file.
  assert.notDeepEqual(occurrences([CLOCK], TIME), []);
});

test("nothing uses Math.random, whose values can be guessed and repeat", () => {
  const everything = repoFiles().filter((path) => /\.(ts|mjs)$/.test(path));
  assertNone(
    occurrences(everything, [/\bMath\s*\.\s*random\b/g]),
    "use randomBytes of node:crypto",
  );
});

test("only errors.ts declares errors", () => {
  const others = shippedSources("packages").filter((path) => path !== `${LIBRARY}/errors.ts`);
  const declared = [/\bextends\s+\w*Error\b(?!\s*\?)/g];
  assertNone(occurrences(others, declared), "throw one of the errors of errors.ts");
  assert.notDeepEqual(occurrences([`${LIBRARY}/errors.ts`], declared), []);
});

test("the library never prints", () => {
  const printing = [/\bconsole\s*\./g, /\bprocess\s*\.\s*std(out|err)\b/g];
  assertNone(occurrences(shipped, printing), "throw an error, or emit an event of events.ts");
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
