// A reporter of node --test: lists the slowest test files at the end.
import { relative } from "node:path";
import { root } from "../workspace.mjs";

const SHOWN = 20;

export default async function* timesReporter(source) {
  const times = [];
  for await (const { type, data } of source) {
    // node:test reports a file as a test with the file's own name. Other tests may name a shared
    // file.
    if (type !== "test:complete" || data.nesting !== 0 || !data.file?.endsWith(data.name)) continue;
    times.push({ file: relative(root, data.file), seconds: data.details.duration_ms / 1_000 });
  }
  yield "slowest files:\n";
  for (const { file, seconds } of times.sort((a, b) => b.seconds - a.seconds).slice(0, SHOWN)) {
    yield `${seconds.toFixed(1).padStart(8)} s  ${file}\n`;
  }
}
