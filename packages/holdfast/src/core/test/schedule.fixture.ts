import assert from "node:assert/strict";
import type { Engine } from "../../engine.js";
import { MemoryStore, memoryEngine } from "../../engines/memory/index.js";
import { HoldfastError } from "../../errors.js";
import { Locks } from "../../locks.js";
import type { AcquireOptions } from "../../options.js";
import {
  type Random,
  randomOf,
  withSeededRandom,
} from "../../test-support/seeded-random.fixture.js";
import { ManualClock } from "../../testing/index.js";
import { exponential } from "../acquiring/retry.js";
import type { Lease } from "../holding/lease.js";

// So few resources that all clients wait for each other.
const FEW = 2;
// More waiters than a process lets compete at once.
const CROWD = 70;
const PERMITS = 3;
const SEMAPHORE = { mode: "shared", limit: PERMITS } as const;
const SHARED = { mode: "shared" } as const;

/** The unreliable path between a client and its backend. */
export interface Wire {
  faults: boolean;
  /** Whether answered requests may arrive once more. */
  readonly repeats: boolean;
  reach(inner: Engine): Engine;
}

export type MakeWire = (clock: ManualClock, random: Random, seed: number) => Wire;

interface Pending {
  readonly controller: AbortController;
  settled: boolean;
}

/** Three clients on one store, with a clock that pauses. A seed always gives the same schedule. */
export class Play {
  readonly clock = new ManualClock();
  readonly store = new MemoryStore();
  readonly pending: Pending[] = [];
  readonly leases: Lease[] = [];
  /** Errors that no single step could report. */
  readonly wrongs: unknown[] = [];
  readonly #highest = new Map<string, bigint>();
  readonly random: Random;
  readonly wire: Wire;
  readonly resources: readonly string[];
  clients: Locks[];

  /** Whether most acquires are those of a crowd that wants a semaphore. */
  readonly crowded: boolean;

  constructor(seed: number, makeWire: MakeWire, resources: number, crowded: boolean) {
    this.crowded = crowded;
    this.resources = Array.from({ length: resources }, (_, i) => `r${i}`);
    this.random = randomOf(seed);
    this.wire = makeWire(this.clock, this.random, seed);
    this.clients = [1, 2, 3].map(() => this.open());
  }

  open(): Locks {
    const engine = this.wire.reach(memoryEngine({ store: this.store }));
    const defaults = { ttlMs: 3_000, callTimeoutMs: 700 };
    return new Locks(engine, { clock: this.clock, defaults, cohort: { ms: 2_000 } });
  }

  async step(): Promise<void> {
    const choice = this.random(24);
    const lease = this.leases[this.random(Math.max(1, this.leases.length))];
    const ignore = () => {};
    if (choice < 8) this.#arrive();
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

  #arrive(): void {
    if (!this.crowded || this.random(3) > 0) {
      this.acquire();
      return;
    }
    const controller = this.random(2) === 0 ? new AbortController() : undefined;
    const [client, resource] = [this.client(), this.#resource()];
    for (let i = 0; i < CROWD; i++) this.acquire(client, resource, SEMAPHORE, controller);
  }

  #resource(): string {
    return this.resources[this.random(this.resources.length)]!;
  }

  acquire(
    client = this.client(),
    resource = this.#resource(),
    kind: AcquireOptions = this.#kind(),
    controller = new AbortController(),
  ): void {
    const entry: Pending = { controller, settled: false };
    const options: AcquireOptions = {
      ...kind,
      ...(this.random(4) === 0 ? { maxHoldMs: 2_500 } : {}),
      ...(this.random(6) === 0 ? { renew: false } : {}),
      ...(this.random(2) === 0 ? { retry: exponential({ minMs: 50 }) } : {}),
      waitMs: [0, 500, 5_000, 20_000][this.random(4)]!,
      signal: controller.signal,
    };
    this.pending.push(entry);
    void client
      .acquire(resource, options)
      .then(
        (lease) => {
          this.leases.push(lease);
          this.examine();
          this.#checkToken(lease);
        },
        (error: unknown) => {
          const expected = controller.signal.aborted || error instanceof HoldfastError;
          assert.ok(expected, String(error));
          assert.notEqual((error as HoldfastError).code, "CONTRACT", String(error));
        },
      )
      .catch((wrong: unknown) => this.wrongs.push(wrong))
      .finally(() => {
        entry.settled = true;
      });
  }

  #kind(): AcquireOptions {
    const shared = this.crowded ? SEMAPHORE : SHARED;
    return {
      ...(this.random(3) === 0 ? { fair: "strict" } : {}),
      ...(this.random(5) === 0 ? shared : {}),
    };
  }

  /** Only answers to shared claims may overtake each other. */
  #checkToken({ resource, mode, token }: Lease): void {
    const rivals = mode === "shared" ? `${resource} exclusive` : resource;
    const highest = this.#highest.get(rivals) ?? 0n;
    assert.ok(token > highest, `${mode} ${token} of ${resource} came after ${highest}`);
    for (const key of [resource, `${resource} ${mode}`]) {
      if (token > (this.#highest.get(key) ?? 0n)) this.#highest.set(key, token);
    }
  }

  /** Checks exclusion: a held exclusive lease is the only one. */
  examine(): void {
    if (this.wrongs.length > 0) throw this.wrongs[0];
    for (const resource of this.resources) {
      const held = this.leases.filter((lease) => lease.resource === resource && lease.held);
      const exclusive = held.filter((lease) => lease.mode === "exclusive");
      const shown = held.map(({ mode, token }) => `${mode} ${token}`).join(", ");
      assert.ok(exclusive.length === 0 || held.length === 1, `${resource}: ${shown} are held`);
      assert.ok(!this.crowded || held.length <= PERMITS, `${resource}: ${shown} are held`);
    }
  }

  /** The network recovers and every client releases; then nothing may be left anywhere. */
  async end(): Promise<void> {
    this.wire.faults = false;
    await this.clock.advance(10_000);
    const releasing = this.leases.map((lease) => lease.release().catch(() => {}));
    await this.clock.advance(60_000);
    await Promise.all(releasing);
    for (const lease of this.leases.splice(0)) void lease.release().catch(() => {});
    await this.clock.advance(60_000);
    this.examine();
    const open = this.pending.filter(({ settled }) => !settled).length;
    assert.equal(open, 0, `${open} acquires never settled`);
    const closing = Promise.all(this.clients.map((client) => client.close()));
    await this.clock.advance(60_000);
    await closing;
    assert.equal(this.clock.timers, 0, "timers are left");
    // A request that arrives again after its release makes a grant that nobody uses: core saw the
    // answer, so the release left no tombstone. The grant may block for its ttl, and no longer.
    const observer = this.open();
    for (let round = 0; round < (this.wire.repeats ? 20 : 1); round++) {
      for (const resource of this.resources) await observer.inspect(resource);
      if (this.wire.repeats) await this.clock.advance(10_000);
    }
    assert.equal(this.store.resources.size, 0, "grants or waiters are left");
    await observer.close();
  }
}

/** Runs one schedule to its end; an error names the seed. */
export async function runSchedule(
  seed: number,
  steps: number,
  makeWire: MakeWire,
  resources = FEW,
  crowded = false,
): Promise<void> {
  try {
    await withSeededRandom(randomOf(-seed), async () => {
      const schedule = new Play(seed, makeWire, resources, crowded);
      for (let step = 0; step < steps; step++) await schedule.step();
      await schedule.end();
    });
  } catch (error) {
    throw new Error(`schedule ${seed}: ${(error as Error).message}`, { cause: error });
  }
}
