import type { QuorumClock } from "holdfast/internal/quorum";
import type { Receiver } from "../nodes/network.js";
import type { Random } from "../random.js";
import type { ScheduledEvent, World } from "../world.js";

/** A process with its own clock. It may be paused and may die. */
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

  /** The world's time, which no process can read. */
  get trueNow(): number {
    return this.#world.now;
  }

  /** Converts a time of this process's clock to the world's time. */
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

  /** Runs an event, or keeps it until a paused process continues. */
  receive(act: () => void): void {
    if (this.#isDead) return;
    if (this.#isPaused) this.#backlog.push(act);
    else act();
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Ends the process. Later answers are dropped. */
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
