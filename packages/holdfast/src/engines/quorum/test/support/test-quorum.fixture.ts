import {
  allOrNone,
  type RedisOptions,
  type RedisServer,
  Relay,
  startRedis,
} from "@holdfast/servers";
import { Redis } from "ioredis";
import type { Misanswered, Relayed, TrueGrant } from "../../../../conformance/index.js";
import type { Engine } from "../../../../engine.js";
import { Locks } from "../../../../locks.js";
import type { ConnectOptions } from "../../../../options.js";
import { keyOf } from "../../../redis/protocol/keys.js";
import type { QuorumEngine } from "../../engine.js";
import { init, type QuorumEngineOptions, type QuorumMember, quorumEngine } from "../../index.js";
import { QUORUM_DEFAULTS, type QuorumSettings, resolveQuorum } from "../../options.js";
import { garbling } from "./garbled.fixture.js";
import { EMPTY, grantsOn, type NodeState, READ } from "./truth.fixture.js";

// Ends a resource's grants earlier on one node, as if that much time had passed on it.
const AGE = `
  local all = redis.call('HGETALL', KEYS[1])
  for i = 1, #all, 2 do
    local head, ends, tail = string.match(all[i + 1], '^(%a:%d+:%d+:%d+:%d+:%d+:%d+:%d:%d:)(%d+)(:.*)$')
    local sooner = string.format('%.0f', tonumber(ends) - tonumber(ARGV[1]))
    redis.call('HSET', KEYS[1], all[i], head .. sooner .. tail)
  end`;

const AGE_TOMBSTONES = `
  for _, key in ipairs(redis.call('KEYS', '{' .. KEYS[1] .. '}:gone:*')) do
    local ends, tail = string.match(redis.call('GET', key), '^(%d+)(:.*)$')
    local sooner = string.format('%.0f', tonumber(ends) - tonumber(ARGV[1]))
    redis.call('SET', key, sooner .. tail, 'KEEPTTL')
    redis.call('PEXPIRE', key, redis.call('PTTL', key) - ARGV[1])
  end`;

const CERTIFICATE = `{${QUORUM_DEFAULTS.prefix}}:certificate`;

/** A quorum of independent Redis servers, and clients that are closed with it. */
export class TestQuorum implements AsyncDisposable {
  readonly servers: readonly RedisServer[];
  /** One direct client for each server, which no fault disturbs. */
  readonly admins: readonly Redis[];
  readonly #settings: QuorumSettings;
  readonly #relays = new Map<Engine, readonly Relay[]>();
  readonly #locks: Locks[] = [];
  readonly #engines: Engine[] = [];
  readonly #closers = new Set<() => void>();
  /** By node, what it had when it was emptied: a key, its record, the next key, and so on. */
  readonly #forgotten = new Map<number, readonly string[]>();

  private constructor(servers: readonly RedisServer[], settings: QuorumSettings) {
    this.servers = servers;
    this.#settings = settings;
    this.admins = servers.map(({ port }) => this.connect(port));
  }

  static async start(
    count: number,
    settings: QuorumSettings = {},
    options: RedisOptions | ((node: number) => RedisOptions) = {},
  ): Promise<TestQuorum> {
    const quorum = await TestQuorum.startFresh(count, settings, options);
    try {
      await quorum.init();
    } catch (error) {
      // Servers that are not stopped would keep the test's process alive for ever.
      await quorum[Symbol.asyncDispose]();
      throw error;
    }
    return quorum;
  }

  /** Starts servers without a certificate. */
  static async startFresh(
    count: number,
    settings: QuorumSettings = {},
    options: RedisOptions | ((node: number) => RedisOptions) = {},
  ): Promise<TestQuorum> {
    const optionsOf = typeof options === "function" ? options : () => options;
    const starts = Array.from({ length: count }, (_, node) => startRedis(optionsOf(node)));
    return new TestQuorum(await allOrNone(starts), settings);
  }

  get names(): string[] {
    return this.servers.map(({ port }) => `127.0.0.1:${port}`);
  }

  get url(): string {
    const params = Object.entries(this.#settings).map(([name, value]) => `${name}=${value}`);
    return `redlock://${this.names.join(",")}?${params.join("&")}`;
  }

  /** The operator's step. Call it only while nobody holds anything. */
  async init(): Promise<void> {
    await init(this.options(this.admins));
  }

  options(clients: readonly Redis[], more: QuorumSettings = {}): QuorumEngineOptions {
    const nodes = clients.map((client, i): QuorumMember => ({ name: this.names[i]!, client }));
    return { nodes, ...this.#settings, ...more };
  }

  /** An engine as another process would have it: with its own direct clients. */
  async engine(
    more: QuorumSettings = {},
    clients = this.servers.map(({ port }) => this.connect(port)),
  ): Promise<Engine> {
    const engine = quorumEngine(this.options(clients, more)) as QuorumEngine;
    this.#engines.push(engine);
    await engine.open();
    const close = engine.close.bind(engine);
    engine.close = async () => {
      await close();
      for (const client of clients) client.disconnect();
    };
    return engine;
  }

  /** The public API on clients of its own, closed with the quorum. */
  async locks(more: QuorumSettings = {}, options: ConnectOptions = {}): Promise<Locks> {
    const ttlMs = Math.min(30_000, this.#settings.maxTtlMs ?? 30_000);
    const locks = new Locks(await this.engine(more), {
      ...options,
      defaults: { ttlMs, ...options.defaults },
    });
    this.#locks.push(locks);
    return locks;
  }

  /** An engine whose clients go through relays, which sever() cuts. */
  async severable(): Promise<Engine> {
    const relays = await Promise.all(this.servers.map(({ port }) => Relay.start(port)));
    const engine = await this.engine(
      {},
      relays.map(({ port }) => this.connect(port)),
    );
    this.#relays.set(engine, relays);
    const close = engine.close.bind(engine);
    engine.close = async () => {
      await close();
      this.#relays.delete(engine);
      await Promise.all(relays.map((relay) => relay.close()));
    };
    return engine;
  }

  sever(engine: Engine): () => void {
    const relays = this.relaysOf(engine);
    for (const relay of relays) relay.cut();
    return () => {
      for (const relay of relays) relay.mend();
    };
  }

  /** An engine whose relays can hold requests back. */
  async relayed(): Promise<Relayed> {
    const engine = await this.severable();
    const relays = this.relaysOf(engine);
    const each = (act: (relay: Relay) => void) => () => relays.forEach(act);
    return { engine, hold: each((relay) => relay.hold()), deliver: each((one) => one.deliver()) };
  }

  /** An engine whose answers can be altered before it sees them. */
  async misanswered(): Promise<Misanswered> {
    const clients = this.servers.map(({ port }) => this.connect(port));
    const wire = garbling(clients);
    return { engine: await this.engine({}, clients), ...wire };
  }

  relaysOf(engine: Engine): readonly Relay[] {
    return this.#relays.get(engine) ?? [];
  }

  connect(port: number): Redis {
    const client = new Redis({ port, retryStrategy: () => 20, maxRetriesPerRequest: null });
    client.on("error", () => {});
    this.#closers.add(() => client.disconnect());
    return client;
  }

  async reset(): Promise<void> {
    await Promise.all(this.admins.map((admin) => admin.flushall()));
    await this.init();
  }

  async restart(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.restart()));
    await this.init();
  }

  age(resource: string, ms: number): Promise<void> {
    return this.#eachNode(AGE, resource, ms);
  }

  ageTombstones(resource: string, ms: number): Promise<void> {
    return this.#eachNode(AGE_TOMBSTONES, resource, ms);
  }

  async #eachNode(script: string, resource: string, ms: number): Promise<void> {
    const key = keyOf(QUORUM_DEFAULTS.prefix, resource);
    await Promise.all(this.admins.map((admin) => admin.eval(script, 1, key, String(ms))));
  }

  /** Empties one node, and remembers what it had at that instant. */
  async empty(node: number): Promise<void> {
    const admin = this.admins[node]!;
    const had = await admin.eval(EMPTY, 1, CERTIFICATE, `${QUORUM_DEFAULTS.prefix}*`);
    const [wasCertified, ...lost] = had as [number, ...string[]];
    // A node that is emptied again during its quarantine has still forgotten what it lost first.
    const forgotten = wasCertified === 1 ? [] : (this.#forgotten.get(node) ?? []);
    this.#forgotten.set(node, [...forgotten, ...lost]);
  }

  /** The grants of a resource, read from the records on the nodes. */
  async truth(resource: string): Promise<readonly TrueGrant[]> {
    const key = keyOf(QUORUM_DEFAULTS.prefix, resource);
    const { writeQuorum } = resolveQuorum(this.names, this.#settings);
    const answers = await Promise.all(
      this.admins.map((admin) => admin.eval(READ, 2, key, CERTIFICATE)),
    );
    const states = answers.map((answer, node): NodeState => {
      const [s, us, certified, ...records] = answer as [string, string, number, ...string[]];
      const lost = this.#forgotten.get(node) ?? [];
      const forgotten = lost.filter((_, i) => i % 2 === 1 && lost[i - 1] === key);
      const atMs = Number(s) * 1e3 + Number(us) / 1e3;
      return { atMs, isCertified: certified === 1, records, forgotten };
    });
    return grantsOn(states, writeQuorum);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.race([
      Promise.allSettled(this.#locks.map((locks) => locks.close())),
      new Promise((enough) => setTimeout(enough, 1_000)),
    ]);
    for (const engine of this.#engines) await engine.close();
    for (const relays of this.#relays.values()) {
      await Promise.all(relays.map((relay) => relay.close()));
    }
    for (const close of this.#closers) close();
    await Promise.all(this.servers.map((server) => server.stop()));
  }
}
