// Fills the small disk under a folder, and prints what a user sees: full-disk <folder>.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { connect } from "../../../../connect.js";
import { EngineError } from "../../../../errors.js";

const [folder = ""] = process.argv.slice(2);
const filler = join(folder, "filler");
const locks = await connect(`sqlite:${folder}/locks.db`);
const lease = await locks.acquire("kept", { ttlMs: 60_000 });
try {
  for (let page = 0; page < 10_000; page++) appendFileSync(filler, Buffer.alloc(4_096));
} catch (error) {
  console.log(`filled ${(error as NodeJS.ErrnoException).code}`);
}
try {
  for (let i = 0; i < 2_000; i++) await locks.acquire(`r${i}`, { label: "x".repeat(200) });
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
  console.log(`refused ${error.effect} ${error.message}`);
}
console.log(`held ${lease.held}`);
writeFileSync(filler, "");
console.log(`recorded ${await locks.check(lease.sequencer)}`);
console.log(`again ${await locks.run("after", () => "granted")}`);
await locks.close();
