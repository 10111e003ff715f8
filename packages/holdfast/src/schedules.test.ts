import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call, Engine } from "./engine.js";
import { MemoryStore, memoryEngine } from "./engines/memory/index.js";
import { EngineError, HoldfastError } from "./errors.js";
import type { Lease } from "./lease.js";
import { Locks } from "./locks.js";
import type { AcquireOptions } from "./options.js";
import { exponential } from "./retry.js";
import { ManualClock } from "./testing/index.js";

// Random schedules: three clients behind a network that drops, delays, loses and repeats, on a clock
// that pauses. Every seed is one schedule, and the same one each time.

const SEEDS = 300;
const STEPS = 60;
const RESOURCES = ["a", "b"];

type Random = (below: number) => number;

function randomOf(seed: number): Random {
  let state = seed * 2_654_435_761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 0x9e37_79b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

/** The backend is honest; what lies between it and the client is not. */
class Network {
  faults = true;
  readonly #clock: ManualClock;
  readonly #random: Random;
  readonly #repeats: boolean;

  constructor(clock: ManualClock, random: Random, repeats: boolean) {
    this.#clock = clock;
    this.#random = random;
    this.#repeats = repeats;
  }

  /** The backend acts by its own time, when a request arrives; the answer counts from the send. */
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
    if (fate === 5 && repeats && this.#repeats) void this.#later(arrive).catch(() => {});
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
      // A renewal that was answered is not repeated: a shorter one would move the expiry back.
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

interface Pending {
  readonly controller: AbortController;
  settled: boolean;
}

class Play {
  readonly clock = new ManualClock();
  readonly store = new MemoryStore();
  readonly pending: Pending[] = [];
  readonly leases: Lease[] = [];
  readonly tokens = new Set<string>();
  readonly random: Random;
  readonly network: Network;
  /** Whether requests that were answered may arrive once more. */
  readonly repeats: boolean;
  clients: Locks[];

  constructor(seed: number) {
    this.random = randomOf(seed);
    this.repeats = seed % 2 === 0;
    this.network = new Network(this.clock, this.random, this.repeats);
    this.clients = [1, 2, 3].map(() => this.open());
  }

  open(): Locks {
    const engine = this.network.reach(memoryEngine({ store: this.store }));
    const defaults = { ttlMs: 3_000, callTimeoutMs: 700 };
    return new Locks(engine, { clock: this.clock, defaults, cohort: { ms: 2_000 } });
  }

  async step(): Promise<void> {
    const choice = this.random(24);
    const lease = this.leases[this.random(Math.max(1, this.leases.length))];
    const ignore = () => {};
    if (choice < 8) this.acquire();
    else if (choice < 13) void lease?.release().catch(ignore);
    else if (choice < 15) {
      const ttlMs = [1_000, 3_000, 6_000][this.random(3)]!;
      void lease?.renew({ ttlMs }).catch(ignore);
    } else if (choice < 17) this.pending[this.random(this.pending.length || 1)]?.controller.abort();
    else if (choice < 18) this.clock.pause(this.random(5_000));
    else if (choice < 19 && lease) {
      void this.client().revoke(lease.resource, { token: lease.token }).catch(ignore);
    } else if (choice < 20 && this.random(3) === 0) {
      const at = this.random(3);
      const closing = this.clients[at]!.close();
      this.clients[at] = this.open();
      await Promise.all([closing, this.clock.advance(20_000)]);
    } else await this.clock.advance(this.random(1_500));
    this.examine();
  }

  client(): Locks {
    return this.clients[this.random(3)]!;
  }

  acquire(): void {
    const controller = new AbortController();
    const entry: Pending = { controller, settled: false };
    const options: AcquireOptions = {
      ...(this.random(3) === 0 ? { fair: "strict" } : {}),
      ...(this.random(5) === 0 ? { mode: "shared" } : {}),
      ...(this.random(4) === 0 ? { maxHoldMs: 2_500 } : {}),
      ...(this.random(6) === 0 ? { renew: false } : {}),
      ...(this.random(2) === 0 ? { retry: exponential({ minMs: 50 }) } : {}),
      waitMs: [0, 500, 5_000, 20_000][this.random(4)]!,
      signal: controller.signal,
    };
    this.pending.push(entry);
    void this.client()
      .acquire(RESOURCES[this.random(RESOURCES.length)]!, options)
      .then(
        (lease) => {
          const name = `${lease.resource} ${lease.token}`;
          assert.ok(!this.tokens.has(name), `the token of ${name} came twice`);
          this.tokens.add(name);
          this.leases.push(lease);
          this.examine();
        },
        (error: unknown) => {
          const expected = controller.signal.aborted || error instanceof HoldfastError;
          assert.ok(expected, String(error));
          assert.notEqual((error as HoldfastError).code, "CONTRACT", String(error));
        },
      )
      .finally(() => {
        entry.settled = true;
      });
  }

  /** The promise itself: whoever is held excludes everyone else. */
  examine(): void {
    for (const resource of RESOURCES) {
      const held = this.leases.filter((lease) => lease.resource === resource && lease.held);
      const exclusive = held.filter((lease) => lease.mode === "exclusive");
      const shown = held.map(({ mode, token }) => `${mode} ${token}`).join(", ");
      assert.ok(exclusive.length === 0 || held.length === 1, `${resource}: ${shown} are held`);
    }
  }

  /** The network heals, everyone gives back; then nothing may be left anywhere. */
  async end(): Promise<void> {
    this.network.faults = false;
    await this.clock.advance(10_000);
    const releasing = this.leases.map((lease) => lease.release().catch(() => {}));
    await this.clock.advance(60_000);
    await Promise.all(releasing);
    for (const lease of this.leases.splice(0)) void lease.release().catch(() => {});
    await this.clock.advance(60_000);
    const open = this.pending.filter(({ settled }) => !settled).length;
    assert.equal(open, 0, `${open} acquires never settled`);
    const closing = Promise.all(this.clients.map((client) => client.close()));
    await this.clock.advance(60_000);
    await closing;
    assert.equal(this.clock.timers, 0, "timers are left");
    // A request that arrives once more after its release makes a grant that nobody holds: without a
    // doubt there was no tombstone. It blocks for its ttl, and that is all it may do.
    const observer = this.open();
    for (let round = 0; round < (this.repeats ? 20 : 1); round++) {
      for (const resource of RESOURCES) await observer.inspect(resource);
      if (this.repeats) await this.clock.advance(10_000);
    }
    assert.equal(this.store.rooms.size, 0, "grants or waiters are left");
    await observer.close();
  }
}

test("the network of these tests counts validity from the send, and acts on arrival", async () => {
  const clock = new ManualClock();
  const network = new Network(clock, () => 2, false);
  const call = { startedAt: clock.now(), timeoutMs: 100 };
  const asked = network.send(false, call, async ({ startedAt }) => ({
    since: startedAt,
    arrivedAt: startedAt,
  }));
  await clock.advance(5);
  const answer = await asked;
  assert.equal(answer.since, call.startedAt);
  assert.equal(answer.arrivedAt, call.startedAt + 2);
});

for (let block = 0; block < 5; block++) {
  const first = 1 + (block * SEEDS) / 5;
  const last = ((block + 1) * SEEDS) / 5;
  test(`no two hold at once, and nothing is left, in random schedules ${first} to ${last}`, async () => {
    for (let seed = first; seed <= last; seed++) {
      const play = new Play(seed);
      try {
        for (let step = 0; step < STEPS; step++) await play.step();
        await play.end();
      } catch (error) {
        throw new Error(`schedule ${seed}: ${(error as Error).message}`, { cause: error });
      }
    }
  });
}
