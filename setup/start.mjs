// `npm start` shows the tour; `npm start -- run nightly -- echo hi` is the command line.
import "./node-version.mjs";
import { runHere } from "./run-here.mjs";
import { script } from "./script.mjs";

const args = process.argv.slice(2);
const program = args.length === 0 ? "examples/dist/tour/main.js" : "packages/cli/dist/main.js";

await script(() => runHere(program, args));
