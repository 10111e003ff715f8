// Runs test files in parallel like `node --test`, with two differences. It keeps the given order:
// `node --test` sorts by name, so a long file may start last and keep one core busy while the other
// idles. And it runs more files at once while the processors idle: most tests wait for an expiry or
// a server, but some compute. The argument is JSON.
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { spec } from "node:test/reporters";
import countReporter from "./count-reporter.mjs";
import { runFiles } from "./run-files.mjs";
import timesReporter from "./times-reporter.mjs";

const { report, times, ...plan } = JSON.parse(process.argv[2]);

const events = Readable.from(runFiles(plan));
// Each reporter listens to the end several times.
events.setMaxListeners(20);
events.on("data", ({ type, data }) => {
  if (type === "test:fail" && data.todo === undefined) process.exitCode = 1;
});
const counted =
  report === null ? [] : [finished(events.compose(countReporter).pipe(createWriteStream(report)))];
events.compose(new spec()).pipe(process.stdout);
if (times) events.compose(timesReporter).pipe(process.stdout);
await Promise.all(counted);
