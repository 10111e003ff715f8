import { Quorum, type ResolvedQuorum, resolveQuorum } from "holdfast/internal/quorum";
import { Checker } from "./checker.js";
import { type ClientFlaws, LockClient } from "./clients/lock-client.js";
import { Stranger } from "./clients/stranger.js";
import { withheld } from "./clients/withheld.js";
import { wrongQuorums } from "./clients/wrong-quorums.js";
import { Wire } from "./nodes/network.js";
import type { NodeFlaws } from "./nodes/node-flaws.js";
import { Site } from "./nodes/site.js";
import type { Plan } from "./plan.js";
import { Random } from "./random.js";
import { World } from "./world.js";

/**
 * Enough for every client after the longest quarantine. A client that has not finished then is
 * stuck.
 */
const MOST_MS = 60_000;
const MOST_EVENTS = 100_000;
/** For messages that are still on their way when the last client has finished. */
const SETTLING_MS = 400;

/** Deliberate mistakes in the nodes, in the clients or between them. */
export interface Flaws {
  readonly node?: NodeFlaws;
  readonly client?: ClientFlaws;
  readonly skipsQuarantine?: boolean;
  readonly releasesWhereAccepted?: boolean;
  readonly writeQuorum?: number;
}

export interface Result {
  readonly violation: string | null;
  readonly grants: number;
  readonly simulatedMs: number;
}

/** Plays one schedule. The same plan gives the same result. */
export function run(plan: Plan, flaws: Flaws = {}): Result {
  const world = new World(MOST_EVENTS);
  const random = new Random(plan.seed ^ 0x5bd1e995);
  const resolved = termsOf(plan, flaws.skipsQuarantine === true);
  const { names } = resolved;
  const terms = { ...resolved, writeQuorum: flaws.writeQuorum ?? resolved.writeQuorum };
  const checker = new Checker(plan.promises === "all", () => world.now);
  const sites = names.map((_, i) => new Site(world, random, plan, i, resolved, flaws.node ?? {}));
  let working = plan.clients;
  let finishedAt = Number.POSITIVE_INFINITY;
  const done = () => {
    if (--working === 0) finishedAt = world.now;
  };
  const hasGrant = (id: string) => sites.some((site) => site.left(id) > 0);
  let processes = 0;
  const begin = () => {
    const flawsOf = flaws.client ?? {};
    const index = processes++;
    const parts = [world, random, plan, index, checker, flawsOf, hasGrant, done] as const;
    const client = new LockClient(...parts);
    const wires = sites.map((site) => new Wire(world, random, plan, site, client, checker));
    const nodes = flaws.releasesWhereAccepted ? wires.map(withheld) : wires;
    client.start(nodes, terms);
    return client;
  };
  const clients = Array.from({ length: plan.clients }, begin);
  const end = (client: number, backMs: number | null) => {
    if (!clients[client]!.die()) return;
    if (backMs === null) return done();
    world.after(backMs, () => {
      clients[client] = begin();
    });
  };
  if (plan.stranger && terms.agreement !== "") {
    const kind = flaws.client?.kind === "Intruding" ? wrongQuorums.Intruding : Quorum;
    new Stranger(world, random, plan, checker).start(sites, terms, kind);
  }
  scheduleFaults(world, plan, sites, clients, checker, end);
  const isPlayed = play(world, () => finishedAt);
  if (!isPlayed) checker.fail(`${working} of ${plan.clients} clients never finished`);
  else if (plan.tidy) expectTidy(world, sites, checker, finishedAt);
  return { violation: checker.violation, grants: checker.grants, simulatedMs: world.now };
}

const known = new Map<string, ResolvedQuorum>();

/** Cached, because thousands of schedules share the same terms. */
function termsOf(plan: Plan, skips: boolean): ResolvedQuorum {
  const { nodes, writeQuorum, maxTtlMs, maxSkewMs, nodeTimeoutMs, idleMs } = plan;
  const key = [nodes, writeQuorum, maxTtlMs, maxSkewMs, nodeTimeoutMs, idleMs, skips].join(" ");
  let terms = known.get(key);
  if (terms === undefined) {
    const names = Array.from({ length: nodes }, (_, i) => `n${i}`);
    const skew = maxSkewMs === null ? {} : { maxSkewMs };
    const settings = { writeQuorum, maxTtlMs, nodeTimeoutMs, idleMs, ...skew };
    terms = resolveQuorum(names, skips ? { ...settings, unsafeSkipQuarantine: true } : settings);
    known.set(key, terms);
  }
  return terms;
}

function scheduleFaults(
  world: World,
  { faults }: Plan,
  sites: readonly Site[],
  clients: readonly LockClient[],
  checker: Checker,
  end: (client: number, backMs: number | null) => void,
): void {
  const last = faults.at(-1)?.atMs ?? 0;
  for (const fault of faults) {
    if (fault.kind === "crash" && fault.memory === "partial") sites[fault.node]!.keepSaving(last);
    world.after(fault.atMs, () => {
      if (fault.kind === "pause") clients[fault.client]!.pause(fault.forMs);
      else if (fault.kind === "die") end(fault.client, fault.backMs);
      else {
        const site = sites[fault.node]!;
        site.suffer(fault);
        if (fault.kind !== "step" && fault.kind !== "hang") checker.forgot(site.name);
      }
    });
  }
}

/** Runs in short steps, so that a schedule ends as soon as all clients have finished. */
function play(world: World, finishedAt: () => number): boolean {
  while (finishedAt() === Number.POSITIVE_INFINITY && world.now < MOST_MS) {
    if (!world.runUntil(world.now + 50)) return false;
  }
  return finishedAt() < Number.POSITIVE_INFINITY;
}

function expectTidy(
  world: World,
  sites: readonly Site[],
  checker: Checker,
  finishedAt: number,
): void {
  world.runUntil(finishedAt + SETTLING_MS);
  for (const site of sites) {
    if (site.left() > 0) checker.fail(`${site.name} still has a grant after all were released`);
  }
}
