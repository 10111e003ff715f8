import type { Plan, PlannedFault } from "../plan.js";
import type { Random } from "../random.js";
import type { World } from "../world.js";
import type { NodeFlaws } from "./node-flaws.js";
import { NodeMemory } from "./node-memory.js";
import { type NodeTerms, SimulatedNode } from "./simulated-node.js";

/** Far enough from 0 that no counter is mistaken for a time. */
const EPOCH_MS = 1_000_000;
/** How often a node saves its memory. After a crash with partial memory it has the last save. */
const SAVE_EVERY_MS = 40;

/** A node with its clock, its disk and its crashes. */
export class Site {
  readonly name: string;
  readonly node: SimulatedNode;
  isDown = false;
  readonly #world: World;
  readonly #rate: number;
  #offsetMs: number;
  #saved: NodeMemory | null = null;
  /** The file that the last life left on the disk. */
  #file = new NodeMemory();
  #lives = 1;

  constructor(
    world: World,
    random: Random,
    { drift, skew }: Plan,
    index: number,
    terms: NodeTerms,
    flaws: NodeFlaws,
  ) {
    this.name = `n${index}`;
    this.#world = world;
    this.#rate = 1 + random.between(-drift, drift);
    this.#offsetMs = EPOCH_MS + random.between(0, terms.maxSkewMs * skew);
    this.node = new SimulatedNode(`${this.name}-1`, `${this.name}-r1`, terms, flaws);
    if (terms.agreement !== "") {
      this.node.memory.certificate = this.node.life.certificate;
    }
  }

  nowUs(): number {
    return Math.floor((this.#offsetMs + this.#world.now * this.#rate) * 1e3);
  }

  /** Saves regularly. Called only where a planned crash needs it. */
  keepSaving(until: number): void {
    if (this.#world.now > until) return;
    this.#saved = this.node.memory.copy();
    this.#world.after(SAVE_EVERY_MS, () => this.keepSaving(until));
  }

  suffer(fault: PlannedFault): void {
    if (fault.kind === "step") {
      this.#offsetMs += fault.byMs;
      if (fault.forMs === Infinity) return;
      this.#world.after(fault.forMs, () => {
        this.#offsetMs -= fault.byMs;
      });
    } else if (fault.kind === "flush") this.node.memory = new NodeMemory();
    else if (fault.kind === "reload") this.node.memory = this.#file.copy();
    else if (fault.kind === "hang") this.#beDown(fault.forMs);
    else if (fault.kind === "resync") {
      this.node.memory = new NodeMemory();
      this.node.life.begin(this.node.life.runId, `${this.name}-r${++this.#lives}`);
    } else if (fault.kind === "crash") {
      this.#file = this.node.memory.copy();
      if (fault.memory === "none") this.node.memory = new NodeMemory();
      if (fault.memory === "partial") this.node.memory = this.#saved?.copy() ?? new NodeMemory();
      this.node.life.begin(`${this.name}-${++this.#lives}`, this.node.life.replId);
      this.#beDown(fault.downMs);
    }
  }

  #beDown(forMs: number): void {
    this.isDown = true;
    this.#world.after(forMs, () => {
      this.isDown = false;
    });
  }

  /** Counts the live grants on this node: all, or those of one id. */
  left(id?: string): number {
    const at = Math.floor(this.nowUs() / 1e3);
    let count = 0;
    for (const state of this.node.memory.states.values()) {
      for (const record of state.records) {
        if (record.ends > at && (id === undefined || record.id === id)) count++;
      }
    }
    return count;
  }
}
