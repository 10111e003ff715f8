import { processorTimeUs, type RedisServer, Relay } from "@holdfast/servers";
import type { Cluster, Redis } from "ioredis";
import type { Harness, Misanswered, Relayed, TrueGrant } from "../../../../conformance/index.js";
import type { Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { adaptClient, type RedisClient } from "../../clients/connection.js";
import { REDIS_TRAITS, RedisEngine } from "../../engine.js";
import { REDIS_DEFAULTS, type RedisTerms } from "../../options.js";
import { keyOf } from "../../protocol/keys.js";
import { SLOTS, slotOf } from "../../protocol/slots.js";
import { misanswering, SHAPES } from "./misanswering.fixture.js";
import { age, ageTombstones, silence, truth } from "./record.fixture.js";
import type { ClientName } from "./test-server.fixture.js";

/** Maps a node's port to the port where it is reached, such as a relay's. */
export type Ways = (port: number) => number;

export interface Topology {
  readonly url: string;
  /** The ports of all nodes that hold data. */
  readonly ports: readonly number[];
  readonly servers: readonly RedisServer[];
  /** A client that reaches every node through these ports. */
  client(name: ClientName, ways?: Ways): Promise<{ client: RedisClient; close(): void }>;
  /** A client that no test disturbs. */
  readonly admin: Redis | Cluster;
  reset(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

// For laws that ask for the URL before a server has started.
const UNKNOWN_URLS = {
  single: "redis://127.0.0.1",
  replicated: "redis://127.0.0.1",
  sentinel: "redis+sentinel://127.0.0.1/main",
  cluster: "redis+cluster://127.0.0.1",
};

export type Kind = keyof typeof UNKNOWN_URLS;

/** The laws' access to a Redis, which starts only when the first law runs. */
export class RedisHarness implements Harness {
  readonly name: string;
  readonly traits = REDIS_TRAITS;
  readonly #kind: Kind;
  readonly #client: ClientName;
  readonly #terms: Partial<RedisTerms>;
  readonly #found: () => Topology | undefined;
  readonly #relays = new Map<Engine, readonly Relay[]>();
  readonly #closers = new Set<() => void>();

  constructor(
    kind: Kind,
    client: ClientName,
    found: () => Topology | undefined,
    terms: Partial<RedisTerms> = {},
  ) {
    this.name = `redis ${kind} through ${client}`;
    this.#kind = kind;
    this.#client = client;
    this.#found = found;
    this.#terms = terms;
  }

  get url(): string {
    return this.#found()?.url ?? UNKNOWN_URLS[this.#kind];
  }

  open(): Promise<Engine> {
    return this.#open();
  }

  reset(): Promise<void> {
    return this.#topology.reset();
  }

  age(resource: string, ms: number): Promise<void> {
    return age(this.#topology.admin, resource, ms);
  }

  ageTombstones(resource: string, ms: number): Promise<void> {
    return ageTombstones(this.#topology.admin, resource, ms);
  }

  silence(resource: string, ms: number): Promise<void> {
    return silence(this.#topology.admin, resource, ms);
  }

  truth(resource: string): Promise<readonly TrueGrant[]> {
    return truth(this.#topology.admin, resource);
  }

  serverTimeUs(): number {
    const { servers } = this.#topology;
    return servers.reduce((sum, { pid }) => sum + processorTimeUs(pid), 0);
  }

  sever(engine: Engine): () => void {
    this.#each(engine, (relay) => relay.cut());
    return () => this.#each(engine, (relay) => relay.mend());
  }

  async relayed(): Promise<Relayed> {
    const engine = await this.#open();
    return {
      engine,
      hold: () => this.#each(engine, (relay) => relay.hold()),
      deliver: () => this.#each(engine, (relay) => relay.deliver()),
    };
  }

  async misanswered(): Promise<Misanswered> {
    let alter = (answer: unknown) => answer;
    const engine = await this.#open((client) => misanswering(client, (answer) => alter(answer)));
    const answerWith = (shape: string | null) => {
      alter = shape === null ? (answer) => answer : SHAPES[shape]!;
    };
    return { engine, shapes: Object.keys(SHAPES), answerWith };
  }

  restart(): Promise<void> {
    return this.#topology.restart();
  }

  async end(): Promise<void> {
    for (const close of this.#closers) close();
    for (const relay of [...this.#relays.values()].flat()) await relay.close();
  }

  get #topology(): Topology {
    const topology = this.#found();
    if (topology === undefined) throw new Error("no server was started");
    return topology;
  }

  /** Opens an engine behind relays that can cut connections or hold requests back. */
  async #open(through = (client: RedisClient) => client): Promise<Engine> {
    const { ports } = this.#topology;
    const own = await Promise.all(ports.map((port) => Relay.start(port)));
    const way = new Map(ports.map((port, i) => [port, own[i]!.port]));
    const { client, close } = await this.#topology.client(this.#client, (port) => way.get(port)!);
    const connection = adaptClient(through(client));
    const engine = new RedisEngine(connection, { ...REDIS_DEFAULTS, ...this.#terms }, () => {
      close();
      this.#closers.delete(close);
      for (const relay of own) void relay.close();
      this.#relays.delete(engine);
    });
    this.#relays.set(engine, own);
    this.#closers.add(close);
    await engine.open();
    if (this.#kind === "cluster") await warmUp(engine, WARM_UPS);
    if (this.#kind === "replicated") await warmUp(engine, WARM_UPS.slice(0, 1));
    return engine;
  }

  #each(engine: Engine, act: (relay: Relay) => void): void {
    for (const relay of this.#relays.get(engine) ?? []) act(relay);
  }
}

/** A harness without a server, for the tables of engines. */
export function harness(): Harness {
  return new RedisHarness("single", "node-redis", () => undefined);
}

/** Makes the client open its connections now: laws count the connections that are left behind. */
async function warmUp(engine: Engine, resources: readonly string[]): Promise<void> {
  await Promise.all(
    resources.map(async (resource) => {
      const one = claim(resource);
      await engine.queue!.enqueue(one, now());
      await engine.release([{ resource, grantId: one.grantId, tombstoneMs: 0 }], now());
    }),
  );
}

// One name for each of three shards. Each shard has a third of the slots, in order.
const WARM_UPS = [0, 1, 2].map((shard) => {
  const inShard = (name: string) =>
    Math.floor((slotOf(keyOf(REDIS_DEFAULTS.prefix, name)) * 3) / SLOTS) === shard;
  return Array.from({ length: 100 }, (_, i) => `warm-up-${i}`).find(inShard)!;
});
