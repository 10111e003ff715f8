import { cpus } from "node:os";

/**
 * A function that tells which share of all processors was idle since its last answer: 0 to 1. It
 * answers 0 until everyMs have passed.
 */
export function createIdleMeter(everyMs) {
  let last = measure();
  return () => {
    const now = measure();
    if (now.at - last.at < everyMs) return 0;
    const share = (now.idle - last.idle) / (now.total - last.total);
    last = now;
    return share;
  };
}

function measure() {
  const all = cpus().map(({ times }) => times);
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  return {
    at: performance.now(),
    idle: sum(all.map(({ idle }) => idle)),
    total: sum(all.flatMap((times) => Object.values(times))),
  };
}
