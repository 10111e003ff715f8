import type { Section } from "./section-log.js";

// Clocks of processes differ by less than a microsecond. No hand-over is as fast as this.
const CLOCK_STEP_MS = 0.002;

/** Two holders at once. The numbers of such a lock are worth nothing. */
export class ExclusionError extends Error {
  override readonly name = "ExclusionError";
}

/**
 * Checks that no two sections overlap, in one process or in several. Returns them in the order of
 * entering. A section starts after its grant was received and ends before its release is called, so
 * a correct lock never looks wrong.
 */
export function checkExclusion(contender: string, logs: readonly Section[][]): Section[] {
  const tolerance = logs.length > 1 ? CLOCK_STEP_MS : 0;
  const all = logs.length === 1 ? logs[0]! : logs.flat();
  const sections = isOrdered(all) ? all : all.toSorted((a, b) => a.enteredAt - b.enteredAt);
  for (let i = 1; i < sections.length; i++) {
    const overlapMs = sections[i - 1]!.leftAt - sections[i]!.enteredAt;
    if (overlapMs <= tolerance) continue;
    throw new ExclusionError(
      `${contender} let two holders in at once: section ${i} of ${sections.length} was entered ` +
        `${(overlapMs * 1e3).toFixed(1)} µs before the one before it was left`,
    );
  }
  return sections;
}

function isOrdered(sections: readonly Section[]): boolean {
  return sections.every((section, i) => i === 0 || section.enteredAt >= sections[i - 1]!.enteredAt);
}
