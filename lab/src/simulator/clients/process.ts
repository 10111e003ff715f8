import type { QuorumClock } from "holdfast/internal/quorum";
import type { Receiver } from "../nodes/network.js";
import type { Random } from "../random.js";
import type { ScheduledEvent, World } from "../world.js";

/** A process with a clock of its own, which may be paused and may die. */
export class Process implements Receiver, QuorumClock {
  readonly #world: World;
  readonly #rate: number;
  readonly #offsetMs: number;
  #isDead = false;
  #isPaused = false;
  #backlog: (() => void)[] = [];

  constructor(world: World, random: Random, drift: number) {
    this.#world = world;
    this.#rate = 1 + random.between(-drift, drift);
    this.#offsetMs = random.between(0, 1_000);
  }

  now(): number {
    return this.#offsetMs + this.#world.now * this.#rate;
  }

  /** In the world's time, which no process knows. */
  get trueNow(): number {
    return this.#world.now;
  }

  /** When it is so late by this process's clock, in the world's time. */
  trueTime(local: number): number {
    return (local - this.#offsetMs) / this.#rate;
  }

  timer(delayMs: number, act: () => void): ScheduledEvent {
    let isOff = false;
    const fire = () => {
      if (!isOff) act();
    };
    const planned = this.#world.after(delayMs / this.#rate, () => this.receive(fire));
    return {
      cancel: () => {
        isOff = true;
        planned.cancel();
      },
    };
  }

  /** What arrives at a paused process waits for it. */
  receive(act: () => void): void {
    if (this.#isDead) return;
    if (this.#isPaused) this.#backlog.push(act);
    else act();
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** What is answered later reaches nobody. */
  end(): void {
    this.#isDead = true;
  }

  pause(forMs: number): void {
    this.#isPaused = true;
    this.#world.after(forMs, () => {
      this.#isPaused = false;
      const backlog = this.#backlog;
      this.#backlog = [];
      for (const act of backlog) this.receive(act);
    });
  }
}
