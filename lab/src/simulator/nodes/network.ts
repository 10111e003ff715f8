import type {
  Answered,
  NodeAnswer,
  NodeFailure,
  NodeRequest,
  QuorumNode,
} from "holdfast/internal/quorum";
import type { Checker } from "../checker.js";
import type { Plan } from "../plan.js";
import type { Random } from "../random.js";
import type { World } from "../world.js";
import type { Site } from "./site.js";

/** The client that receives answers. It may be paused or dead. */
export interface Receiver {
  receive(act: () => void): void;
}

/** One client's connection to one node. Messages are delayed, reordered, lost and duplicated. */
export class Wire implements QuorumNode {
  readonly name: string;
  readonly #world: World;
  readonly #random: Random;
  readonly #plan: Plan;
  readonly #site: Site;
  readonly #receiver: Receiver;
  readonly #checker: Checker;
  /** The agreement of this client, where it differs from that of the node's own clients. */
  readonly #agreement: string | undefined;

  constructor(
    world: World,
    random: Random,
    plan: Plan,
    site: Site,
    receiver: Receiver,
    checker: Checker,
    agreement?: string,
  ) {
    this.#agreement = agreement;
    this.#checker = checker;
    this.name = site.name;
    this.#world = world;
    this.#random = random;
    this.#plan = plan;
    this.#site = site;
    this.#receiver = receiver;
  }

  ask(request: NodeRequest, answered: Answered): void {
    let isAnswered = false;
    const once: Answered = (answer, us) => {
      if (isAnswered) return;
      isAnswered = true;
      answered(answer, us);
    };
    if (!this.#isLost()) this.#deliver(request, once);
    const { duplication } = this.#plan;
    if (duplication > 0 && !this.#isCalm && this.#random.chance(duplication)) {
      this.#deliver(request, once);
    }
  }

  #deliver(request: NodeRequest, answered: Answered): void {
    this.#world.after(this.#delayMs(), () => {
      if (this.#site.isDown) return;
      const us = this.#site.nowUs();
      const failure = this.#failure();
      if (failure?.effect === "none") return this.#answer(failure, us, answered);
      const answer = this.#handle(request, us);
      this.#answer(failure ?? answer, us, answered);
    });
  }

  #handle(request: NodeRequest, us: number): NodeAnswer {
    const { node, name } = this.#site;
    const answer = node.handle(request, us, this.#agreement);
    const state = "resource" in request ? node.memory.states.get(request.resource) : undefined;
    this.#checker.handled(name, request, answer, state);
    return answer;
  }

  #failure(): NodeFailure | null {
    const { failures } = this.#plan;
    if (failures === 0 || this.#isCalm || !this.#random.chance(failures)) return null;
    const effect = this.#random.chance(0.5) ? "none" : "unknown";
    return { kind: "failed", effect, error: new Error("simulated") };
  }

  #answer(answer: NodeAnswer, us: number, answered: Answered): void {
    if (this.#isLost()) return;
    this.#world.after(this.#delayMs(), () => this.#reply(answer, us, answered));
  }

  #reply(answer: NodeAnswer, us: number, answered: Answered): void {
    this.#receiver.receive(() => answered(answer, us));
  }

  get #isCalm(): boolean {
    return this.#world.now > this.#plan.calmAfterMs;
  }

  #isLost(): boolean {
    const { loss } = this.#plan;
    return loss > 0 && !this.#isCalm && this.#random.chance(loss);
  }

  #delayMs(): number {
    const { delayMs, slow, slowMs } = this.#plan;
    const mostMs = slow > 0 && !this.#isCalm && this.#random.chance(slow) ? slowMs : delayMs[1];
    return this.#random.between(delayMs[0], mostMs);
  }
}
