import "./node-version.mjs";
import { runHere } from "./run-here.mjs";
import { script } from "./script.mjs";

await script(() => runHere("repo-tests/dist/generated.js", []));
