import "./node-version.mjs";
import { runHere } from "./run-here.mjs";
import { script } from "./script.mjs";

await script(() => runHere("lab/dist/simulator/main.js", process.argv.slice(2)));
