// Runs test files side by side, in the order given, as `node --test` would: that one sorts them by name, and
// the longest, begun last, would keep one core busy and the other idle. Its argument is JSON.
import { createWriteStream } from "node:fs";
import { finished } from "node:stream/promises";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import countReporter from "./count-reporter.mjs";

const { files, concurrency, timeoutMs, report } = JSON.parse(process.argv[2]);

const tests = run({ files, concurrency, timeout: timeoutMs });
tests.on("test:fail", ({ todo }) => {
  if (todo === undefined) process.exitCode = 1;
});
const times = new Map();
for (const type of ["test:pass", "test:fail"]) {
  tests.on(type, ({ file, nesting, details }) => {
    if (nesting !== 0 || file === undefined) return;
    times.set(file, (times.get(file) ?? 0) + details.duration_ms);
  });
}
const counted =
  report === null ? [] : [finished(tests.compose(countReporter).pipe(createWriteStream(report)))];
tests.compose(new spec()).pipe(process.stdout);
tests.on("end", () => {
  const slowest = [...times].sort(([, a], [, b]) => b - a).slice(0, 400);
  if (process.env.HOLDFAST_TIMES)
    createWriteStream(process.env.HOLDFAST_TIMES).end(
      slowest.map(([f, ms]) => `${Math.round(ms)}\t${f}`).join("\n"),
    );
});
await Promise.all(counted);
