// Installs everything that tests use from Debian. `npm test` runs this before its first test.
import { ensureAll } from "./install.js";

try {
  const installed = ensureAll();
  if (installed.length > 0) console.log(`installed ${installed.join(", ")}`);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
