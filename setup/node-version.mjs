// Every script here imports this first. On a Node that is too old, one sentence is better than the
// syntax error or the missing function that would follow.
import { readFileSync } from "node:fs";

const manifest = new URL("../package.json", import.meta.url);
const wanted = JSON.parse(readFileSync(manifest, "utf8")).engines.node;
const [major, minor] = wanted.replace(">=", "").split(".").map(Number);
const [ourMajor, ourMinor] = process.versions.node.split(".").map(Number);

if (ourMajor < major || (ourMajor === major && ourMinor < minor)) {
  console.error(`Holdfast needs Node ${wanted}; this is Node ${process.versions.node}.`);
  process.exit(1);
}
