import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Facts } from "./facts.js";
import type { Stage } from "./stage.js";

const ROUNDS = 4;
const HOLD_MS = 60;

/** Everybody wants the lock. A number in a file shows whether they kept out of each other's way. */
export async function contend({ screen, folder, actors }: Stage): Promise<Facts["increments"]> {
  screen.title(
    "1  Four processes, one lock",
    `Each adds one to a number in a file, ${ROUNDS} times, under the lock.`,
    "A lane shows the fencing token while its process holds; a dot waits.",
  );
  const file = join(folder, "number");
  await writeFile(file, "0");
  for (const actor of actors) actor.order({ do: "count", rounds: ROUNDS, holdMs: HOLD_MS, file });
  for (const actor of actors) {
    for (let round = 0; round < ROUNDS; round++) await actor.next("released");
    // What was granted on the way is on record; the next act waits for grants of its own.
    actor.forget();
  }
  return { expected: ROUNDS * actors.length, found: Number(await readFile(file, "utf8")) };
}
