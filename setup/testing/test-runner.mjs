// Runs test files in parallel like `node --test`, but in the given order. `node --test` sorts by
// name, so a long file may start last and keep one core busy while the other idles. The argument is
// JSON.
import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import countReporter from "./count-reporter.mjs";
import timesReporter from "./times-reporter.mjs";

const { files, concurrency, timeoutMs, report, times } = JSON.parse(process.argv[2]);

const tests = run({ files, concurrency, timeout: timeoutMs });
tests.on("test:fail", ({ todo }) => {
  if (todo === undefined) process.exitCode = 1;
});
const counted =
  report === null ? [] : [finished(tests.compose(countReporter).pipe(createWriteStream(report)))];
tests.compose(new spec()).pipe(process.stdout);
if (times) tests.compose(timesReporter).pipe(process.stdout);
await Promise.all(counted);
