// Opens files up to the limit, fails to connect, closes the files, and connects: crowded <url>.
import { closeSync, openSync } from "node:fs";
import { connect } from "../../../../connect.js";
import { EngineError } from "../../../../errors.js";

const [url = ""] = process.argv.slice(2);
// Loads the modules that connect needs, and creates the file.
await (await connect(url)).close();
const files: number[] = [];
try {
  for (;;) files.push(openSync("/dev/null", "r"));
} catch {
  // The limit is reached.
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
