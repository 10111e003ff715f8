import assert from "node:assert";
import { randomBytes } from "node:crypto";
import { systemClock } from "../core/runtime/clock.js";
import type { Engine, EngineTraits, Mode, ResourceView } from "../engine.js";
import { Locks } from "../locks.js";
import type { ConnectOptions } from "../options.js";
import { type FlakyEngine, flakyEngine } from "../testing/flaky-engine.js";
import { Client } from "./client.js";
import { ClientProcess, type Job } from "./client-process.js";
import { type Harness, type Misanswered, type Relayed, traitsOf } from "./harness.js";
import { elapse, within } from "./timing.js";

const CLOSE_MS = 5_000;
/** For what usually comes soon but may be late on a busy machine: a new process, its clean-up. */
const HANG_MS = 20_000;
/**
 * A ttl for harnesses that cannot age records: long enough to act in and short enough to wait for.
 */
const REAL_LIFE_MS = 300;
/** Some laws ask several times within a delay, and a busy machine needs time for each question. */
const REAL_DELAY_MS = 1_200;
/** Waited after an expiry, for backends that count in whole milliseconds. */
const AFTER_MS = 5;

/** A large batch: it reveals engines that split batches, or look at the first entries only. */
const BATCH = 20;

/** One kind of grant. Every verb must treat all kinds alike. */
export interface Variant {
  readonly mode: Mode;
  /** How often its token was handed over. */
  readonly index: number;
  /** The claim options that make such a grant. */
  readonly terms: { readonly mode: Mode; readonly tokens: number };
}

/** What a law works with: clients of the backend, unique names, and ways to let time pass. */
export class LawContext {
  readonly harness: Harness;
  readonly traits: EngineTraits;
  readonly #name = randomBytes(5).toString("hex");
  readonly #engines: Engine[] = [];
  readonly #locks: Locks[] = [];
  readonly #children: ClientProcess[] = [];
  #names = 0;

  constructor(harness: Harness) {
    this.harness = harness;
    this.traits = traitsOf(harness);
  }

  /** A name that no other law uses. */
  resource(tail = "thing"): string {
    return `${this.#name}/${this.#names++}/${tail}`;
  }

  async engine(): Promise<Engine> {
    const engine = await this.harness.open();
    this.#engines.push(engine);
    return engine;
  }

  async client(): Promise<Client> {
    return new Client(await this.engine(), this);
  }

  async clients(count: number): Promise<Client[]> {
    const clients: Client[] = [];
    for (let i = 0; i < count; i++) clients.push(await this.client());
    return clients;
  }

  /** A client whose requests can be delayed. */
  async relayed(): Promise<{ client: Client } & Pick<Relayed, "hold" | "deliver">> {
    const relayed = await this.harness.relayed!();
    this.#engines.push(relayed.engine);
    const client = new Client(relayed.engine, this);
    return { client, hold: () => relayed.hold(), deliver: () => relayed.deliver() };
  }

  /** A client whose backend can be made to answer in a wrong shape. */
  async misanswered(): Promise<{ client: Client } & Omit<Misanswered, "engine">> {
    const { engine, shapes, ...wire } = await this.harness.misanswered!();
    this.#engines.push(engine);
    const answerWith = (shape: string | null) => wire.answerWith(shape);
    return { client: new Client(engine, this), shapes, answerWith };
  }

  /** The kinds of grants of this engine: each mode, with and without a hand-over of its token. */
  get variants(): readonly Variant[] {
    const indexes = this.traits.tokenRange >= 2 ? [0, 1] : [0];
    return this.traits.modes.flatMap((mode) =>
      indexes.map((index) => ({ mode, index, terms: { mode, tokens: index + 1 } })),
    );
  }

  /** Makes grants of all variants, each on its own resource, to be renewed in one call. */
  async batch(client: Client, ttlMs: number) {
    const variants = this.variants;
    const entries = Array.from({ length: BATCH }, async (_, i) => {
      const { terms, index } = variants[i % variants.length]!;
      const { claim } = await client.take(this.resource(`${i}`), { ...terms, ttlMs });
      return { claim, index };
    });
    return Promise.all(entries);
  }

  /** The end and token of the resource's one grant, from the backend's record. */
  async truth(resource: string): Promise<{ readonly end: number; readonly token: bigint }> {
    const grants = await this.harness.truth!(resource);
    const readBy = systemClock.now();
    assert.equal(grants.length, 1, `the backend has ${grants.length} holders of the resource`);
    return { end: readBy + grants[0]!.remainingMs, token: grants[0]!.token };
  }

  /** The public API on this engine, closed after the law. */
  locksOn(engine: Engine, options: ConnectOptions = {}): Locks {
    const locks = new Locks(engine, options);
    this.#locks.push(locks);
    return locks;
  }

  /** The public API on a client of its own. */
  async locks(options: ConnectOptions = {}): Promise<Locks> {
    return this.locksOn(await this.engine(), options);
  }

  /** The public API, and the engine under it for `harness.sever`. */
  async severable(options: ConnectOptions = {}): Promise<{ locks: Locks; engine: Engine }> {
    const engine = await this.engine();
    return { locks: this.locksOn(engine, options), engine };
  }

  /** The public API, with a wire between core and engine that the law can disturb. */
  async flakyLocks(options: ConnectOptions = {}): Promise<{ locks: Locks; flaky: FlakyEngine }> {
    const flaky = flakyEngine(await this.engine());
    return { locks: this.locksOn(flaky, options), flaky };
  }

  child(job: Omit<Job, "url">): ClientProcess {
    const url = this.harness.url;
    assert(url !== undefined, "laws that start processes need a url");
    const child = new ClientProcess({ ...job, url });
    this.#children.push(child);
    return child;
  }

  /** The nearest ttl that the engine can keep. */
  ttl(wantedMs: number): number {
    const { minMs, maxMs, stepMs } = this.traits.ttl;
    const fitting = Math.min(maxMs, Math.max(minMs, wantedMs));
    return Math.ceil(fitting / stepMs) * stepMs;
  }

  /** A ttl for grants that the law will let expire. */
  get lifeMs(): number {
    return this.ttl(this.harness.age ? 10_000 : REAL_LIFE_MS);
  }

  /** A lock-delay that the law will wait for. */
  get delayMs(): number {
    return this.harness.age ? 7_000 : REAL_DELAY_MS;
  }

  /** Lets ms pass for this resource, by ageing it or by waiting. */
  async pass(resource: string, ms: number): Promise<void> {
    if (this.harness.age) await this.harness.age(resource, ms);
    else await elapse(ms);
  }

  /** Lets the holders' grants of this resource expire, without renewals. */
  async expire(resource: string, ttlMs: number, ...holders: Client[]): Promise<void> {
    if (this.traits.expiry === "ttl" || this.harness.age) {
      return this.pass(resource, ttlMs + AFTER_MS);
    }
    // A session lives while its client sends keepalives, so the client must be cut off.
    const { sever } = this.harness;
    assert(sever !== undefined, "a session can only be let expire by a harness that can sever");
    const heals = [];
    for (const { engine } of holders) heals.push(await sever.call(this.harness, engine));
    await elapse(ttlMs * 1.5);
    for (const heal of heals) await heal();
  }

  /** Waits until nobody holds or waits, because clean-up may run in the background. */
  async untilEmpty(client: Client, resource: string, ms = HANG_MS): Promise<void> {
    const deadline = systemClock.now() + ms;
    let view: ResourceView;
    for (;;) {
      view = await client.inspect(resource);
      if (view.holders.length === 0 && view.waiters.length === 0) return;
      if (systemClock.now() > deadline) break;
      await elapse(10);
    }
    const { holders, waiters } = view;
    assert.fail(`${holders.length} holders and ${waiters.length} waiters were left behind`);
  }

  /** Waits until this many wait at the backend; without a queue, long enough for one poll. */
  async untilWaiters(locks: Locks, resource: string, count: number): Promise<void> {
    if (this.harness.queue === false) return elapse(250);
    const deadline = systemClock.now() + HANG_MS;
    for (;;) {
      const { waiters } = await locks.inspect(resource);
      if (waiters.length === count) return;
      assert(
        systemClock.now() < deadline,
        `${waiters.length} wait in the queue instead of ${count}`,
      );
      await elapse(5);
    }
  }

  /** Closes whatever the law left open. */
  async tearDown(): Promise<void> {
    for (const child of this.#children) await child.end();
    const close = async (one: Locks | Engine) => {
      try {
        await within(CLOSE_MS, one.close(), "close()");
      } catch {
        // The law has its result by now; L12 tests whether close() works.
      }
    };
    // Locks first: they need their engines for what they still hold.
    await Promise.all(this.#locks.map(close));
    await Promise.all(this.#engines.map(close));
  }
}
