// A reporter of node --test: at the end, the test files that took longest.
import { relative } from "node:path";
import { root } from "../workspace.mjs";

const SHOWN = 20;

export default async function* timesReporter(source) {
  const times = [];
  for await (const { type, data } of source) {
    // A file is a test that is named after itself. Tests name the file that calls test(), which may be shared.
    if (type !== "test:complete" || data.nesting !== 0 || !data.file?.endsWith(data.name)) continue;
    times.push({ file: relative(root, data.file), seconds: data.details.duration_ms / 1_000 });
  }
  yield "slowest files:\n";
  for (const { file, seconds } of times.sort((a, b) => b.seconds - a.seconds).slice(0, SHOWN)) {
    yield `${seconds.toFixed(1).padStart(8)} s  ${file}\n`;
  }
}
