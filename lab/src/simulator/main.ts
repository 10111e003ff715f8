// npm run simulate -- --seeds N [--from S]: plays N schedules and shows the first violation.
import { playMany } from "./many.js";
import { planOf } from "./plan.js";
import { shrink } from "./shrink.js";

const seeds = numberAfter("--seeds", 10_000);
const from = numberAfter("--from", 1);
const startedAt = performance.now();
const played = await playMany({ first: from, end: from + seeds, step: 1, flaws: {} });
const tookMs = performance.now() - startedAt;
if (played.broken === null) {
  console.log(
    `${played.schedules} schedules, ${played.grants} grants, no violation; ${(tookMs / 1e3).toFixed(1)} s, ` +
      `${Math.round(played.simulatedMs / tookMs)} simulated seconds a second`,
  );
} else {
  const { seed, violation } = played.broken;
  const smallest = shrink(planOf(seed), {});
  console.log(`seed ${seed}: ${violation}`);
  console.log(`shrunk to: ${smallest.violation}`);
  console.log(JSON.stringify(smallest.plan, null, 2));
  process.exitCode = 1;
}

function numberAfter(name: string, otherwise: number): number {
  const args = process.argv.slice(2);
  const at = args.indexOf(name);
  const value = at < 0 ? otherwise : Number(args[at + 1]);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  console.error(`${name} takes a whole number`);
  process.exit(64);
}
