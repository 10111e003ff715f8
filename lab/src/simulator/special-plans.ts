// Plans about one situation each, which random faults rarely or never produce.
import { type Base, MAX_TTL_MS, PLAIN, type Plan, type PlannedFault } from "./plan.js";
import type { Random } from "./random.js";

type Maker = (random: Random, base: Base) => Plan;

const makers: readonly Maker[] = [
  ...[survivalPlan, survivalPlan, idlePlan, idlePlan, driftPlan, seenStepPlan, setBackPlan],
  ...[mixedPlan, mixedPlan, mixedPlan, disorderPlan, reloadPlan],
];

export const SPECIALS = 12;

export function specialPlan(random: Random, base: Base, kind: number): Plan {
  return makers[kind]!(random, base);
}

/**
 * Nodes fail one after the other, each with time to recover, while others wait. The lease survives.
 */
function survivalPlan(random: Random, base: Base): Plan {
  const ttlMs = random.pick([200, MAX_TTL_MS]);
  const nodes = random.pick([3, 4, 5]);
  const clients = 2 + random.below(3);
  const faults: PlannedFault[] = [];
  // Enough time for the grant to reach all nodes.
  let atMs = 4 * ttlMs;
  for (let node = 0; node < nodes; node++) {
    faults.push(troubleOf(random, node, atMs, ttlMs));
    // A waiter that dies leaves the fence of a bid behind.
    const backMs = random.between(1, 100);
    const diesAtMs = atMs + MAX_TTL_MS + random.between(0, 300);
    if (random.chance(0.3)) faults.push({ kind: "die", atMs: diesAtMs, client: 1, backMs });
    // The node fails, is noticed, sits out its quarantine and is joined, at the second try if a bid
    // blocked the first.
    atMs += 1.5 * ttlMs + 60 + MAX_TTL_MS * 1.02 + 6 * (ttlMs / 3);
  }
  return {
    ...{ ...PLAIN, ...base, ...CERTAIN, nodes, clients, ttlMs },
    ...{ writeQuorum: (nodes >> 1) + 1, readers: random.pick([0, 0, 0.3]) },
    ...{ maxTtlMs: MAX_TTL_MS, delayMs: [0, 2], cycles: 1, drift: random.pick([0, 0.004]) },
    ...{ holdMs: atMs, faults: inOrder(faults), promises: "all" },
  };
}

function troubleOf(random: Random, node: number, atMs: number, ttlMs: number): PlannedFault {
  const memory = random.pick(["full", "partial", "none", "hang"] as const);
  if (memory === "hang") return { kind: "hang", atMs, node, forMs: 1.5 * ttlMs };
  return { kind: "crash", atMs, node, downMs: random.between(1, 60), memory };
}

/** Counters expire while clients rest; new processes know nothing, and messages take seconds. */
function idlePlan(random: Random, base: Base): Plan {
  const back = { backMs: random.between(200, 2_500), client: random.below(base.clients) };
  return {
    ...{ ...PLAIN, ...base, ttlMs: 1_000, maxTtlMs: 1_200, maxSkewMs: 400, idleMs: 1_000 },
    // Clocks this far apart drift beyond maxSkewMs within a minute: then not all nodes can agree.
    writeQuorum: (base.nodes >> 1) + 1,
    ...{ delayMs: [0, 10], slow: random.pick([0, 0.1, 0.3]), slowMs: 2_500, nodeTimeoutMs: 600 },
    ...{ loss: random.pick([0, 0.1]), duplication: random.pick([0, 0.1]), calmAfterMs: 6_000 },
    ...{ cycles: 2, restMs: 3_000, tokens: random.pick([1, 1_024]), skew: 0.9 },
    ...{ faults: [{ kind: "die", atMs: random.between(100, 3_000), ...back }], promises: "all" },
  };
}

/** Clocks drift as much as allowed, and leases are never renewed, so they last until their end. */
function driftPlan(_random: Random, base: Base): Plan {
  return {
    ...{ ...PLAIN, ...base, ttlMs: 5_000, maxTtlMs: 6_000, drift: 0.005, unrenewed: 1 },
    ...{ delayMs: [0, 2], repeatMs: 0, unheard: 0, otherTtls: 0, promises: "all" },
  };
}

/**
 * One clock jumps forward and stays there, after all clients have seen its earlier time. Another
 * node is down at first, so that some grants are on only as many nodes as the write quorum needs.
 */
function seenStepPlan(random: Random, base: Base): Plan {
  const ttlMs = random.pick([150, 250]);
  const node = random.below(3);
  const byMs = random.between(120, 3 * ttlMs);
  const atMs = random.between(60, 2 * ttlMs);
  const away = {
    kind: "hang",
    atMs: 0,
    node: (node + 1) % 3,
    forMs: random.between(5, 200),
  } as const;
  return {
    ...{ ...PLAIN, ...base, ...CERTAIN, nodes: 3, writeQuorum: 2, clients: 3, cycles: 2, ttlMs },
    ...{ maxTtlMs: MAX_TTL_MS, delayMs: [0, 2], unrenewed: random.pick([0, 1]), promises: "all" },
    faults: [away, { kind: "step", atMs, node, byMs, forMs: Infinity }],
  };
}

/** A clock is set back: its node keeps grants for longer, and its clock refuses fewer tokens. */
function setBackPlan(random: Random, base: Base): Plan {
  const ttlMs = random.pick([100, 150, 250]);
  const atMs = random.between(0, 2 * ttlMs);
  const byMs = -random.between(10, 600);
  const step = {
    kind: "step",
    atMs,
    node: random.below(base.nodes),
    byMs,
    forMs: Infinity,
  } as const;
  return {
    ...{ ...PLAIN, ...base, writeQuorum: (base.nodes >> 1) + 1, ttlMs, maxTtlMs: MAX_TTL_MS },
    ...{ delayMs: [0, 10], slow: 0.1, slowMs: 200, loss: random.pick([0, 0.1]) },
    ...{ faults: [step], promises: "all" },
  };
}

/** A little of everything, on quorums of every shape. */
function mixedPlan(random: Random, base: Base): Plan {
  const nodes = random.pick([3, 4, 5]);
  const majority = (nodes >> 1) + 1;
  const ttlMs = random.pick([100, 150, 250]);
  const stranger = random.chance(0.3);
  const faults = Array.from({ length: random.below(4) }, (): PlannedFault => {
    // The stranger must learn that its terms differ before the nodes forget theirs.
    const atMs = random.between(0, 3 * ttlMs) + (stranger ? 200 : 0);
    const client = random.below(base.clients);
    if (random.chance(0.3)) return { kind: "pause", atMs, client, forMs: 2 * ttlMs };
    if (random.chance(0.3)) return { kind: "die", atMs, client, backMs: random.between(5, 400) };
    return troubleOf(random, random.below(nodes), atMs, ttlMs);
  });
  return {
    ...{ ...PLAIN, ...base, nodes, ttlMs, maxTtlMs: MAX_TTL_MS, delayMs: [0, 5] },
    writeQuorum: random.chance(0.5) ? majority : majority + random.below(nodes - majority + 1),
    ...{ slow: random.pick([0.05, 0.3]), slowMs: random.pick([200, 500, 1_500]) },
    ...{ loss: random.pick([0, 0.1]), duplication: random.pick([0, 0.1]) },
    ...{ failures: random.pick([0, 0.1]), revocations: random.pick([0, 0.3]) },
    ...{ resources: random.pick([1, 2]), tokens: random.pick([1, 1_024]) },
    ...{ skew: random.pick([0.25, 0.9]), detours: random.pick([0, 0, 0.5]) },
    ...{ otherTtls: random.pick([0, 0.4]), stranger },
    ...{ faults: inOrder(faults), promises: "all" },
  };
}

/** Renewals with different ttls overtake each other. */
function disorderPlan(random: Random, base: Base): Plan {
  return {
    ...{ ...PLAIN, ...base, ...CERTAIN, ttlMs: random.pick([150, 250]), maxTtlMs: MAX_TTL_MS },
    ...{ writeQuorum: (base.nodes >> 1) + 1, clients: 3, delayMs: [0, 5], calmAfterMs: 3_000 },
    ...{ slow: random.pick([0.3, 0.6]), slowMs: random.pick([100, 200, 400]), otherTtls: 0.7 },
    promises: "all",
  };
}

/**
 * One client certifies a node. Then the node is filled from the file of its last life, before the
 * other client, which was paused, has certified it.
 */
function reloadPlan(random: Random, base: Base): Plan {
  const node = random.below(3);
  const first = random.between(0, 60);
  const atMs = first + MAX_TTL_MS * 1.02 + random.between(5, 80);
  const pause = { kind: "pause", client: 2, atMs: first + 200, forMs: atMs - first - 190 } as const;
  return {
    ...{ ...PLAIN, ...base, ...CERTAIN, nodes: 3, writeQuorum: 2, clients: 3, cycles: 4 },
    ...{ ttlMs: 250, maxTtlMs: MAX_TTL_MS, delayMs: [0, 2], loss: random.pick([0.1, 0.25]) },
    faults: [
      { kind: "crash", atMs: first, node, downMs: 1, memory: "full" },
      pause,
      { kind: "reload", atMs, node },
    ],
    promises: "all",
  };
}

/** Claims without repeats, lost answers, changed ttls or readers. */
const CERTAIN = { repeatMs: 0, unheard: 0, otherTtls: 0, readers: 0 } as const;

function inOrder(faults: readonly PlannedFault[]): PlannedFault[] {
  return [...faults].sort((a, b) => a.atMs - b.atMs);
}
