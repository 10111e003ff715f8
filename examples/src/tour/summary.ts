import { type Claim, type Facts, inSeconds, overlapsIn } from "./facts.js";
import type { Screen } from "./screen.js";

const NEXT = [
  ["npm start -- run nightly -- echo hi", "a command under a lock"],
  ["npm start -- run --help", "what else it can do"],
  ["examples/src/first.ts", "a lock and a fence in your own program"],
  ["docs/fencing.md", "the fence of act 4, for your database"],
  ["docs/contract.md", "what every engine must keep"],
] as const;

export function showSummary(screen: Screen, claims: readonly Claim[], tookMs: number): void {
  const kept = claims.filter(({ holds }) => holds).length;
  screen.say();
  screen.say(`  ${screen.paint(1, "What was just shown")}`);
  screen.say(`  ${screen.paint(2, `measured in the last ${inSeconds(tookMs)}, on this machine`)}`);
  screen.say();
  for (const { holds, text } of claims) screen.verdict(holds, text);
  if (kept === claims.length) return;
  screen.say();
  screen.say(`  ${claims.length - kept} of ${claims.length} did not hold. Please report this.`);
}

export function sayWhatNext(screen: Screen): void {
  const width = Math.max(...NEXT.map(([what]) => what.length));
  screen.say();
  screen.say(`  ${screen.paint(1, "What to try next")}`);
  screen.say();
  for (const [what, why] of NEXT) {
    screen.say(`  ${what.padEnd(width)}   ${screen.paint(2, why)}`);
  }
  screen.say();
}

/** For programs, and for the tour's own test. Tokens are text: JSON's numbers end at 53 bits. */
export function showJson(facts: Facts, claims: readonly Claim[], tookMs: number): void {
  const ok = claims.every(({ holds }) => holds);
  const all = { ok, tookMs, overlaps: overlapsIn(facts.grants), ...facts, claims };
  const text = JSON.stringify(
    all,
    (_, value) => (typeof value === "bigint" ? `${value}` : value),
    2,
  );
  process.stdout.write(`${text}\n`);
}
