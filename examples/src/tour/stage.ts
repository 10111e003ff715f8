import { setTimeout as sleep } from "node:timers/promises";
import type { Locks } from "holdfast";
import { Actor } from "./actor.js";
import type { Grant } from "./facts.js";
import type { Report } from "./messages.js";
import type { Screen } from "./screen.js";

export const RESOURCE = "shop";
export const NAMES = ["ada", "ben", "cleo", "dan"] as const;
// Long enough for a reader to see what just happened.
export const BEAT_MS = 600;

const LOOK_EVERY_MS = 10;

export type Cast = Readonly<Record<(typeof NAMES)[number], Actor>>;

/** What the acts share: the processes, a folder, and the record of every grant. */
export class Stage {
  readonly folder: string;
  readonly screen: Screen;
  readonly locks: Locks;
  readonly cast: Cast;
  readonly #grants: { holder: string; token: bigint; from: number; until: number }[] = [];

  constructor(folder: string, url: string, screen: Screen, locks: Locks) {
    this.folder = folder;
    this.screen = screen;
    this.locks = locks;
    const enter = (name: string) =>
      new Actor(name, [url, RESOURCE], (actor, report) => this.#hear(actor, report));
    this.cast = { ada: enter("ada"), ben: enter("ben"), cleo: enter("cleo"), dan: enter("dan") };
  }

  get actors(): readonly Actor[] {
    return Object.values(this.cast);
  }

  /** Every grant so far, in the order of the instants at which the holders had it. */
  get grants(): readonly Grant[] {
    return [...this.#grants].sort((a, b) => a.from - b.from);
  }

  /** Claims are queued in the order of their arrival, so this waits for each to arrive. */
  async untilWaiting(waiters: number): Promise<void> {
    while ((await this.locks.inspect(RESOURCE)).waiters.length < waiters) {
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** From here on the holder does nothing: it begins to give back, or it was killed or stopped. */
  endGrant(holder: string, at: number): void {
    const open = this.#grants.find((grant) => grant.holder === holder && grant.until === Infinity);
    if (open !== undefined) open.until = at;
  }

  #hear(actor: Actor, report: Report): void {
    const { name } = actor;
    switch (report.say) {
      case "asking":
        this.screen.mark(name, "waiting");
        break;
      case "granted": {
        const { token, at } = report;
        this.#grants.push({ holder: name, token: BigInt(token), from: at, until: Infinity });
        this.screen.mark(name, { token });
        break;
      }
      case "counted":
        this.screen.row(`${name} counts ${report.from} → ${report.to}`);
        break;
      case "released":
        this.endGrant(name, report.at);
        this.screen.mark(name, "idle");
        break;
    }
  }
}
