#!/usr/bin/env node
import { main } from "./dispatch.js";

// A reader that does not read keeps us for so long, and no longer.
const LINGER_MS = 1_000;

// A reader that went away (`holdfast … 2>&1 | head`) must not end the wrapper before its command.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

process.exitCode = await main(process.argv.slice(2));
setTimeout(() => process.exit(), LINGER_MS).unref();
// What still holds the loop open after the last word was said would only keep a script waiting.
const said = [process.stdout, process.stderr].map(
  (stream) => new Promise<void>((resolve) => stream.write("", () => resolve())),
);
await Promise.all(said);
process.exit();
