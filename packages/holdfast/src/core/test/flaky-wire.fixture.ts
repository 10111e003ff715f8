import type { Call, Engine } from "../../engine.js";
import type { Random } from "../../test-support/seeded-random.fixture.js";
import { type Fault, flakyEngine, type ManualClock, type Verb } from "../../testing/index.js";
import type { MakeWire, Wire } from "./schedule.fixture.js";

const FAULT_IN = 6;
const LONGEST_DELAY_MS = 4_000;

/** Every engine is a flakyEngine, and every call may meet one of its faults. */
class FlakyWire implements Wire {
  faults = true;
  readonly repeats = true;
  readonly #clock: ManualClock;
  readonly #random: Random;

  constructor(clock: ManualClock, random: Random) {
    this.#clock = clock;
    this.#random = random;
  }

  reach(inner: Engine): Engine {
    const flaky = flakyEngine(inner);
    const queue = flaky.queue!;
    const meet =
      <Of, Answer>(verb: Verb, ask: (of: Of, call: Call) => Promise<Answer>) =>
      (of: Of, call: Call) => {
        flaky.pushes(this.#pushes());
        const fault = this.#fault();
        if (fault !== null) flaky.inject(verb, fault);
        return ask(of, call);
      };
    return {
      name: flaky.name,
      traits: flaky.traits,
      tryAcquire: meet("tryAcquire", flaky.tryAcquire),
      renew: meet("renew", flaky.renew),
      release: meet("release", flaky.release),
      check: meet("check", flaky.check),
      revoke: meet("revoke", flaky.revoke),
      inspect: flaky.inspect,
      list: flaky.list,
      close: () => flaky.close(),
      watch: flaky.watch!,
      queue: {
        enqueue: meet("enqueue", queue.enqueue),
        heartbeat: meet("heartbeat", queue.heartbeat),
        withdraw: meet("withdraw", queue.withdraw),
        onGrant: queue.onGrant,
      },
    };
  }

  #fault(): Fault | null {
    if (!this.faults || this.#random(FAULT_IN) > 0) return null;
    const kinds = ["fail", "lose-reply", "hang", "hold-request", "hold-reply", "replay"] as const;
    const kind = kinds[this.#random(kinds.length)]!;
    if (kind === "fail" || kind === "lose-reply") return { kind };
    if (kind === "hang") return { kind, carriedOut: this.#random(2) === 0 };
    return { kind, until: this.#later() };
  }

  #pushes(): "deliver" | "drop" | Promise<unknown> {
    const fate = this.faults ? this.#random(5) : 4;
    return fate === 0 ? "drop" : fate === 1 ? this.#later() : "deliver";
  }

  #later(): Promise<void> {
    return new Promise((arrive) => {
      this.#clock.timer(this.#random(LONGEST_DELAY_MS), arrive, false);
    });
  }
}

export const flakyWire: MakeWire = (clock, random) => new FlakyWire(clock, random);
