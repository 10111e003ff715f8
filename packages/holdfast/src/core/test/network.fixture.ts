import type { Call, Engine } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { Random } from "../../test-support/seeded-random.fixture.js";
import type { ManualClock } from "../../testing/index.js";
import type { Wire } from "./schedule.fixture.js";

/** The backend works correctly; the network between it and the client does not. */
export class Network implements Wire {
  faults = true;
  readonly repeats: boolean;
  readonly #clock: ManualClock;
  readonly #random: Random;

  constructor(clock: ManualClock, random: Random, repeats: boolean) {
    this.#clock = clock;
    this.#random = random;
    this.repeats = repeats;
  }

  /** The backend acts when a request arrives; the validity in the answer counts from the send. */
  async send<T>(repeats: boolean, call: Call, ask: (call: Call) => Promise<T>): Promise<T> {
    const arrive = async () =>
      backdate(await ask({ ...call, startedAt: this.#clock.now() }), call.startedAt);
    const fate = this.faults ? this.#random(20) : 19;
    if (fate === 0) return new Promise<never>(() => {});
    if (fate === 1) throw new EngineError("never sent", { effect: "none", retryable: true });
    if (fate === 2) return this.#later(arrive);
    if (fate === 3) return arrive().then((answer) => this.#later(async () => answer));
    if (fate === 4) {
      await arrive();
      throw new EngineError("answer lost", { effect: "unknown", retryable: true });
    }
    if (fate === 5 && repeats && this.repeats) void this.#later(arrive).catch(() => {});
    return arrive();
  }

  #later<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#clock.timer(this.#random(4_000), () => void work().then(resolve, reject), false);
    });
  }

  reach(inner: Engine): Engine {
    const queue = inner.queue!;
    return {
      name: inner.name,
      traits: inner.traits,
      tryAcquire: (claim, call) => this.send(true, call, (c) => inner.tryAcquire(claim, c)),
      // An answered renewal is not repeated: a shorter one would move the expiry back.
      renew: (refs, call) => this.send(false, call, (c) => inner.renew(refs, c)),
      release: (refs, call) => this.send(true, call, (c) => inner.release(refs, c)),
      check: (sequence, call) => this.send(true, call, (c) => inner.check(sequence, c)),
      revoke: (ref, call) => this.send(true, call, (c) => inner.revoke(ref, c)),
      inspect: (resource, call) => inner.inspect(resource, call),
      list: (filter, call) => inner.list(filter, call),
      close: () => inner.close(),
      watch: inner.watch!,
      queue: {
        enqueue: (claim, call) => this.send(true, call, (c) => queue.enqueue(claim, c)),
        heartbeat: (refs, call) => this.send(true, call, (c) => queue.heartbeat(refs, c)),
        withdraw: (ref, call) => this.send(true, call, (c) => queue.withdraw(ref, c)),
        onGrant: (listener) =>
          queue.onGrant((ref, granted) => {
            const fate = this.faults ? this.#random(5) : 4;
            if (fate === 1) void this.#later(async () => listener(ref, granted));
            else if (fate > 1) listener(ref, granted);
          }),
      },
    };
  }
}

function backdate<T>(answer: T, sentAt: number): T {
  if (Array.isArray(answer)) return answer.map((each) => backdate(each, sentAt)) as T;
  if (typeof answer !== "object" || answer === null || !("since" in answer)) return answer;
  return { ...answer, since: Math.min(Number(answer.since), sentAt) };
}
