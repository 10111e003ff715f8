#!/usr/bin/env node
import { main } from "./dispatch.js";

// How long we wait for a reader of our output that does not read.
const LINGER_MS = 1_000;

// A reader that went away (`holdfast … 2>&1 | head`) must not end the wrapper before its command.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

process.exitCode = await main(process.argv.slice(2));
setTimeout(() => process.exit(), LINGER_MS).unref();
// After the last output, an open handle would only keep the calling script waiting. So we exit.
const said = [process.stdout, process.stderr].map(
  (stream) => new Promise<void>((resolve) => stream.write("", () => resolve())),
);
await Promise.all(said);
process.exit();
