import type { Quorum, ResolvedQuorum } from "holdfast/internal/quorum";
import type { Checker } from "../checker.js";
import { Wire } from "../nodes/network.js";
import type { Site } from "../nodes/site.js";
import type { Plan } from "../plan.js";
import type { Random } from "../random.js";
import type { World } from "../world.js";
import { Process } from "./process.js";

const UNTIL_MS = 3_000;

/** A client with different terms that asks the same nodes again and again. */
export class Stranger extends Process {
  readonly #parts: readonly [World, Random, Plan];
  readonly #checker: Checker;

  constructor(world: World, random: Random, plan: Plan, checker: Checker) {
    super(world, random, plan.drift);
    this.#parts = [world, random, plan];
    this.#checker = checker;
  }

  start(sites: readonly Site[], terms: ResolvedQuorum, Kind: typeof Quorum): void {
    const [world, random, plan] = this.#parts;
    const theirs = { ...terms, maxTtlMs: terms.maxTtlMs / 2, agreement: "something else" };
    const wires = sites.map(
      (site) => new Wire(world, random, plan, site, this, this.#checker, theirs.agreement),
    );
    let asked = 0;
    const surroundings = {
      ...{ clock: this, random: () => random.next(), report: () => {} },
      mintNonce: () => `strange-${asked}`,
    };
    const quorum = new Kind(wires, theirs, surroundings);
    const ask = () => {
      if (this.trueNow > UNTIL_MS) return;
      const what = { resource: "r", mode: "x", ttlMs: 100, delayMs: 0, tokens: 1 } as const;
      const id = `s-${asked++}`;
      quorum.acquire({ ...what, id, label: "" }, { patienceMs: 100, order: asked }, (outcome) => {
        if (outcome.kind === "granted") this.#checker.fail("a client with other terms was granted");
      });
      this.timer(random.between(20, 60), ask);
    };
    ask();
  }
}
