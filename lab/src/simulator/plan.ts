import { Random } from "./random.js";
import { SPECIALS, specialPlan } from "./special-plans.js";

export type PlannedFault =
  | {
      readonly kind: "crash";
      readonly atMs: number;
      readonly node: number;
      readonly downMs: number;
      /** What it remembers after the restart: everything, an older state, or nothing. */
      readonly memory: "full" | "partial" | "none";
    }
  /**
   * Flush: emptied while it runs. Resync: replaced by the data of another server that it followed
   * for a moment. Reload: filled from the file of its last life.
   */
  | { readonly kind: "flush" | "resync" | "reload"; readonly atMs: number; readonly node: number }
  /** A clock jumps forward or back. It is corrected after forMs, unless that is Infinity. */
  | {
      readonly kind: "step";
      readonly atMs: number;
      readonly node: number;
      readonly byMs: number;
      readonly forMs: number;
    }
  /** The node does not answer for a while, and comes back with its memory. */
  | {
      readonly kind: "hang";
      readonly atMs: number;
      readonly node: number;
      readonly forMs: number;
    }
  | {
      readonly kind: "pause";
      readonly atMs: number;
      readonly client: number;
      readonly forMs: number;
    }
  /** A client dies. Another process replaces it after backMs, unless that is null. */
  | {
      readonly kind: "die";
      readonly atMs: number;
      readonly client: number;
      readonly backMs: number | null;
    };

/** A whole schedule. The same plan always plays in the same way. */
export interface Plan {
  readonly seed: number;
  readonly nodes: number;
  readonly writeQuorum: number;
  readonly clients: number;
  readonly cycles: number;
  readonly ttlMs: number;
  readonly maxTtlMs: number;
  /** How long a counter that nobody raises is kept. */
  readonly idleMs: number;
  readonly nodeTimeoutMs: number;
  /** Null for the default, which follows from maxTtlMs. */
  readonly maxSkewMs: number | null;
  /** How far apart the nodes' clocks are at most, as a part of maxSkewMs. */
  readonly skew: number;
  readonly resources: number;
  /** How long a client rests before its next claim, at most. */
  readonly restMs: number;
  /** Whether a client with other terms asks the same nodes all the time. */
  readonly stranger: boolean;
  /** How many tokens a claim asks for. */
  readonly tokens: number;
  /** The fraction of answers that report a failure, whether or not the node did the work. */
  readonly failures: number;
  /** The fraction of looks at a lease that revoke it. The others only check it. */
  readonly revocations: number;
  readonly delayMs: readonly [least: number, most: number];
  /** The fraction of messages that take much longer than others. */
  readonly slow: number;
  readonly slowMs: number;
  readonly loss: number;
  readonly duplication: number;
  /**
   * From then on no message is lost, late or duplicated. A client that is not served then is stuck.
   */
  readonly calmAfterMs: number;
  readonly readers: number;
  /** The fraction of leases that are never renewed. */
  readonly unrenewed: number;
  /** How much the rate of a clock differs from the true one at most, as a fraction. */
  readonly drift: number;
  /**
   * A claim without an answer is repeated after this time, while its first call continues. 0:
   * never.
   */
  readonly repeatMs: number;
  /**
   * The fraction of grants whose answer does not reach the caller, which then repeats the claim.
   */
  readonly unheard: number;
  /** The fraction of calls that go through a second client, like another server of a service. */
  readonly detours: number;
  /** Nobody may be granted for this long after a lease was lost instead of released. */
  readonly lockDelayMs: number;
  /** The fraction of renewals that ask for a different ttl than the last one. */
  readonly otherTtls: number;
  /** The fraction of leases that are left to expire instead of released. */
  readonly left: number;
  readonly faults: readonly PlannedFault[];
  /**
   * What must hold. Tokens and progress always; exclusion unless a clock was set without notice.
   */
  readonly promises: "all" | "tokens";
  /** Nothing is lost and nobody dies: when all have finished, nothing may be left on any node. */
  readonly tidy: boolean;
  /** The first client holds its lease for this long and must not lose it. 0: it may lose it. */
  readonly holdMs: number;
}

/** The defaults of all plans. */
export const PLAIN = {
  ...{ idleMs: 3_600_000, nodeTimeoutMs: 100, maxSkewMs: null, skew: 0.25 },
  ...{ resources: 1, tokens: 1, restMs: 20, stranger: false },
  ...{ failures: 0, revocations: 0, lockDelayMs: 0, left: 0, detours: 0, holdMs: 0 },
  ...{ repeatMs: 0, unheard: 0, otherTtls: 0, readers: 0, drift: 0, loss: 0, duplication: 0 },
  ...{ slow: 0, slowMs: 0, unrenewed: 0, calmAfterMs: 1_500, faults: [], tidy: false },
} as const;

export const MAX_TTL_MS = 300;

/** Seeds with this remainder play nodes that forget again right after their quarantine. */
export const RELAPSE = 15;

/** Makes the plan of a seed. The seed also decides the kind of faults. */
export function planOf(seed: number): Plan {
  const random = new Random(seed);
  const nodes = random.chance(0.9) ? 3 : 5;
  const majority = (nodes >> 1) + 1;
  const base = {
    seed,
    nodes,
    writeQuorum: random.chance(0.12) ? nodes : majority,
    clients: random.chance(0.65) ? 2 : 3,
    cycles: random.chance(0.75) ? 1 : 2,
    readers: random.chance(0.2) ? 0.5 : 0,
    drift: random.chance(0.5) ? 0.004 : 0,
    repeatMs: random.chance(0.25) ? random.pick([20, 60, 120]) : 0,
    unheard: random.chance(0.2) ? 0.4 : 0,
    otherTtls: random.chance(0.2) ? 0.4 : 0,
  };
  const kind = seed % KINDS;
  if (kind < 4) return tidyPlan(random, base);
  if (kind === RELAPSE) return relapsePlan(random, base);
  if (kind < RELAPSE) return troubledPlan(random, base, kind > 12);
  return specialPlan(random, base, kind - RELAPSE - 1);
}

export const KINDS = RELAPSE + 1 + SPECIALS;
/** Seeds with this remainder play nodes that are filled from an old file. */
export const RELOAD = KINDS - 1;

export type Base = Pick<
  Plan,
  | ("seed" | "nodes" | "writeQuorum" | "clients" | "cycles" | "readers" | "drift")
  | ("repeatMs" | "unheard" | "otherTtls")
>;

function tidyPlan(random: Random, base: Base): Plan {
  return {
    ...PLAIN,
    ...base,
    ...{ ttlMs: 5_000, maxTtlMs: 6_000, delayMs: [0, 2], slow: random.pick([0, 0.1, 0.3]) },
    ...{ slowMs: 40, loss: 0, duplication: 0, calmAfterMs: 10_000, unrenewed: 0, faults: [] },
    ...{ promises: "all", tidy: true },
  };
}

function troubledPlan(random: Random, base: Base, sets: boolean): Plan {
  const ttlMs = random.pick([100, 150, 250]);
  const faults: PlannedFault[] = [];
  const count = random.below(5);
  for (let i = 0; i < count; i++) faults.push(faultOf(random, base, ttlMs, sets));
  return {
    ...PLAIN,
    ...base,
    ...{
      ttlMs,
      maxTtlMs: MAX_TTL_MS,
      delayMs: random.pick([
        [0, 2],
        [0, 10],
      ] as const),
    },
    slow: random.pick([0, 0.05, 0.2]),
    slowMs: random.pick([30, 200, 500]),
    loss: random.pick([0, 0.02, 0.15]),
    duplication: random.pick([0, 0.05, 0.2]),
    calmAfterMs: 1_000,
    unrenewed: random.pick([0, 0.3]),
    lockDelayMs: random.chance(0.2) ? random.pick([20, MAX_TTL_MS - ttlMs]) : 0,
    left: random.chance(0.2) ? 0.5 : 0,
    detours: random.chance(0.2) ? 0.5 : 0,
    faults: faults.sort((a, b) => a.atMs - b.atMs),
    promises: faults.some(({ kind }) => kind === "step") ? "tokens" : "all",
    tidy: false,
  };
}

/**
 * A node forgets, is certified by one client, and forgets again before the other client has looked.
 */
function relapsePlan(random: Random, base: Base): Plan {
  const node = random.below(3);
  const first = random.between(0, 60);
  const again = first + MAX_TTL_MS * 1.02 + random.between(0, 60);
  const flush = { kind: "flush", atMs: again, node } as const;
  const crash = { kind: "crash", atMs: again, node, downMs: 1, memory: "none" } as const;
  return {
    ...PLAIN,
    ...base,
    ...{ nodes: 3, writeQuorum: 2, clients: 3, cycles: 4, readers: 0 },
    ...{ repeatMs: 0, unheard: 0, otherTtls: 0 },
    ...{ ttlMs: 250, maxTtlMs: MAX_TTL_MS, delayMs: [0, 2], slow: 0, slowMs: 0 },
    ...{ loss: random.pick([0.1, 0.25]), duplication: 0, calmAfterMs: 1_500, unrenewed: 0 },
    faults: [{ kind: "flush", atMs: first, node }, random.pick([flush, crash])],
    ...{ promises: "all", tidy: false },
  };
}

function faultOf(random: Random, base: Base, ttlMs: number, sets: boolean): PlannedFault {
  const atMs = random.between(0, 2 * ttlMs);
  const node = random.below(base.nodes);
  const client = random.below(base.clients);
  switch (random.below(sets ? 7 : 6)) {
    case 0:
    case 1:
    case 2: {
      const memory = random.pick(["full", "partial", "none"] as const);
      return { kind: "crash", atMs, node, downMs: random.between(1, 60), memory };
    }
    case 3:
      return { kind: random.chance(0.5) ? "flush" : "resync", atMs, node };
    case 4:
      return { kind: "pause", atMs, client, forMs: random.between(10, 2 * ttlMs) };
    case 5:
      return { kind: "die", atMs, client, backMs: null };
    default:
      // Forward only: grants then end early on that node. setBackPlan sets clocks back.
      return {
        ...{ kind: "step", atMs, node, byMs: random.between(50, 3 * ttlMs) },
        forMs: random.between(20, 600),
      };
  }
}
