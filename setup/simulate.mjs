import "./node-version.mjs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { setUp } from "./run-here.mjs";
import { script } from "./script.mjs";
import { INTERNAL_CONDITION, root } from "./workspace.mjs";

const PROGRAM = join(root, "lab/dist/simulator/main.js");

await script(async () => {
  await setUp();
  // A child process, because Node reads the condition when it starts. Its worker threads inherit
  // it.
  const args = [INTERNAL_CONDITION, PROGRAM, ...process.argv.slice(2)];
  const { status } = spawnSync(process.execPath, args, { stdio: "inherit" });
  process.exitCode = status ?? 1;
});
