import type { Plan } from "./plan.js";
import { type Flaws, run } from "./run.js";

export interface Shrunk {
  readonly plan: Plan;
  readonly violation: string;
}

const PARTS = [
  ...(["loss", "duplication", "slow", "readers", "unrenewed", "drift"] as const),
  ...(["repeatMs", "unheard", "lockDelayMs", "otherTtls", "left", "detours"] as const),
  ...(["failures", "revocations"] as const),
];

/** Removes parts of a plan as long as the plan still shows a violation. */
export function shrink(plan: Plan, flaws: Flaws): Shrunk {
  let best = plan;
  let violation = run(plan, flaws).violation ?? "";
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const smaller of candidates(best)) {
      const outcome = run(smaller, flaws).violation;
      if (outcome === null) continue;
      best = smaller;
      violation = outcome;
      isSmaller = true;
      break;
    }
  }
  return { plan: best, violation };
}

function* candidates(plan: Plan): Generator<Plan> {
  for (let i = 0; i < plan.faults.length; i++) {
    yield { ...plan, faults: plan.faults.toSpliced(i, 1) };
  }
  const isTouched = plan.faults.some(
    (fault) => "client" in fault && fault.client === plan.clients - 1,
  );
  if (plan.clients > 1 && !isTouched) yield { ...plan, clients: plan.clients - 1 };
  if (plan.cycles > 1) yield { ...plan, cycles: plan.cycles - 1 };
  for (const part of PARTS) {
    if (plan[part] > 0) yield { ...plan, [part]: 0 };
  }
}
