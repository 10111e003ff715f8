// Opens files until no more can be, connects in vain, closes some, and connects: crowded <url>.
import { closeSync, openSync } from "node:fs";
import { connect } from "../../../../connect.js";
import { EngineError } from "../../../../errors.js";

const [url = ""] = process.argv.slice(2);
// Loads what is needed to connect, and makes the file.
await (await connect(url)).close();
const files: number[] = [];
try {
  for (;;) files.push(openSync("/dev/null", "r"));
} catch {
  // That was the last one.
}
try {
  await connect(url);
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
  const retryable = error.retryable ? "retryable" : "final";
  console.log(`${error.code} ${retryable} ${error.message.replace(/^.*": /, "")}`);
}
for (const file of files) closeSync(file);
await (await connect(url)).close();
console.log("opened");
