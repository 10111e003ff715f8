import {
  Quorum,
  type QuorumNode,
  ReleaseNotifications,
  type ResolvedQuorum,
  resolveQuorum,
} from "holdfast/internal/quorum";
import { SimulatedNode } from "../nodes/simulated-node.js";
import { Random } from "../random.js";
import { World } from "../world.js";

export interface CrowdPlan {
  readonly seed: number;
  readonly nodes: number;
  readonly contenders: number;
  readonly rttMs: number;
  readonly holdMs: number;
  /** A contender rests for a random time up to this before its next claim. */
  readonly restMs: number;
  readonly forMs: number;
}

export interface FairnessReport {
  readonly msPerGrant: number;
  /** How many scripts one node runs for each grant. */
  readonly scripts: number;
  readonly fewest: number;
  readonly most: number;
}

/** How often the core polls an engine that notifies of changes. */
const LOOK_MS = 1_000;
const LEAST_LOOK_MS = 5;
const EPOCH_MS = 1_000_000;

/** Measures speed and fairness of contenders on a network without faults. */
export function playCrowd(plan: CrowdPlan): FairnessReport {
  const world = new World(Infinity);
  const random = new Random(plan.seed);
  const names = Array.from({ length: plan.nodes }, (_, i) => `n${i}`);
  const terms = resolveQuorum(names, {});
  let scripts = 0;
  const listeners = new Set<(node: number, resource: string, ticket: number) => void>();
  const delayMs = () => (plan.rttMs / 2) * random.between(0.9, 1.1);
  const nodes = names.map((name, i) => {
    const node = new SimulatedNode(name, "r", terms);
    node.memory.certificate = node.life.certificate;
    node.onCall = (resource, ticket) => {
      for (const tell of listeners) world.after(delayMs(), () => tell(i, resource, ticket));
    };
    return node;
  });
  const wireTo = (node: SimulatedNode, i: number): QuorumNode => ({
    name: names[i]!,
    ask: (request, answered) => {
      world.after(delayMs(), () => {
        scripts++;
        const us = Math.floor((EPOCH_MS + world.now) * 1e3);
        const answer = node.handle(request, us);
        world.after(delayMs(), () => answered(answer, us));
      });
    },
  });
  const all = Array.from({ length: plan.contenders }, (_, index) => {
    const contender = new CrowdClient(world, random, plan, terms, nodes.map(wireTo), index);
    listeners.add((...notice) => contender.notifications.hear(...notice));
    contender.start();
    return contender;
  });
  world.runUntil(plan.forMs);
  const grants = all.map((contender) => contender.grants);
  const sum = grants.reduce((total, count) => total + count, 0);
  return {
    msPerGrant: plan.forMs / sum,
    scripts: scripts / plan.nodes / sum,
    fewest: Math.min(...grants),
    most: Math.max(...grants),
  };
}

class CrowdClient {
  readonly notifications: ReleaseNotifications;
  grants = 0;
  readonly #world: World;
  readonly #random: Random;
  readonly #plan: CrowdPlan;
  readonly #quorum: Quorum;
  readonly #index: number;
  #claims = 0;
  #order = 0;
  #wake: () => void = () => {};

  constructor(
    world: World,
    random: Random,
    plan: CrowdPlan,
    terms: ResolvedQuorum,
    nodes: readonly QuorumNode[],
    index: number,
  ) {
    this.#world = world;
    this.#random = random;
    this.#plan = plan;
    this.#index = index;
    const clock = {
      now: () => world.now,
      timer: (ms: number, act: () => void) => world.after(ms, act),
    };
    const seededRandom = () => random.next();
    this.#quorum = new Quorum(nodes, terms, {
      ...{ clock, random: seededRandom, mintNonce: () => "nonce", report: () => {} },
    });
    this.notifications = new ReleaseNotifications(clock, seededRandom);
    this.notifications.serve(this.#quorum);
    this.notifications.onChange(() => this.#wake());
  }

  start(): void {
    this.#world.after(this.#random.between(0, this.#plan.restMs), () => this.#claim());
  }

  #claim(): void {
    this.#try(`c${this.#index}-${this.#claims++}`);
  }

  #try(id: string): void {
    let isChanged = false;
    this.#wake = () => {
      isChanged = true;
    };
    const what = { resource: "r", mode: "x", ttlMs: 30_000, delayMs: 0, tokens: 1 } as const;
    const call = { patienceMs: 4_000, order: ++this.#order };
    this.#quorum.acquire({ ...what, id, label: "" }, call, (outcome) => {
      if (outcome.kind === "granted") {
        this.#wake = () => {};
        this.grants++;
        this.#world.after(this.#plan.holdMs, () => this.#release(id));
        return;
      }
      const afterMs = outcome.kind === "busy" ? outcome.retryAfterMs : LOOK_MS;
      const again = () => {
        planned.cancel();
        this.#try(id);
      };
      const planned = this.#world.after(Math.min(LOOK_MS, Math.max(LEAST_LOOK_MS, afterMs)), again);
      this.#wake = again;
      if (isChanged) again();
    });
  }

  #release(id: string): void {
    const ref = { resource: "r", id, tombstoneMs: 0, patienceMs: 4_000 };
    this.#quorum.release(ref, () => this.start());
  }
}
