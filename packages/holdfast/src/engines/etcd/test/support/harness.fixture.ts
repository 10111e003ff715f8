import { type EtcdServer, Relay, startEtcd } from "@holdfast/servers";
import type { Harness, Misanswered, Relayed, TrueGrant } from "../../../../conformance/index.js";
import type { Engine } from "../../../../engine.js";
import { EtcdClient } from "../../client/client.js";
import {
  del,
  found,
  type KeyValue,
  type Op,
  put,
  type RawTxn,
  range,
} from "../../client/requests.js";
import { ETCD_TRAITS, EtcdEngine } from "../../engine.js";
import { Leases } from "../../leases/leases.js";
import { ETCD_DEFAULTS, resolveEtcd } from "../../options.js";
import { readRecord } from "../../queue/key-record.js";
import { type KeyRange, Keys } from "../../queue/keys.js";
import { Queue, tokenOf } from "../../queue/queue.js";
import { GARBLED_SHAPES, GarblingRelay } from "./garbling-relay.fixture.js";

/** One etcd or several, for the laws: where they are, and how they crash and come back. */
export interface Servers {
  readonly ports: readonly number[];
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * A harness with servers of its own. It starts them at the first use: other tests import this file
 * too.
 */
export class Lane {
  readonly #start: () => Promise<Servers>;
  readonly #direct: boolean;
  readonly #prefix: string;
  readonly #relays = new Map<Engine, readonly Relay[]>();
  #servers: Servers | null = null;
  #admin: EtcdClient | null = null;

  /**
   * direct: no relays, whose sockets would be in this process. prefix: its own, if lanes share
   * servers.
   */
  constructor(
    start: () => Promise<Servers>,
    { direct = false, prefix = ETCD_DEFAULTS.prefix }: { direct?: boolean; prefix?: string } = {},
  ) {
    this.#start = start;
    this.#direct = direct;
    this.#prefix = prefix;
  }

  async start(): Promise<void> {
    this.#servers = await this.#start();
    const endpoints = this.#servers.ports.map((port) => `127.0.0.1:${port}`);
    this.#admin = new EtcdClient(resolveEtcd({ endpoints }));
  }

  async stop(): Promise<void> {
    for (const relays of this.#relays.values()) for (const relay of relays) await relay.close();
    this.#admin?.close();
    await this.#servers?.stop();
  }

  harness(): Harness {
    const lane = this;
    return {
      name: "etcd",
      traits: ETCD_TRAITS,
      get url() {
        const hosts = (lane.#servers?.ports ?? [2379]).map((port) => `127.0.0.1:${port}`);
        return `etcd://${hosts.join(",")}?prefix=${lane.#prefix}`;
      },
      open: () => this.#open(),
      reset: () => this.#reset(),
      age: (resource, ms) => this.#age(new Keys(this.#prefix).rangeOf(resource), ms),
      ageTombstones: (_resource, ms) => {
        const start = new Keys(this.#prefix).tombstone("").replace(/[^/]*$/, "");
        return this.#age({ start, end: start.replace(/\/$/, "0") }, ms);
      },
      restart: () => this.#servers!.restart(),
      truth: (resource) => this.#truth(resource),
      ...(this.#direct
        ? {}
        : {
            sever: (engine: Engine) => this.#sever(engine),
            relayed: () => this.#relayed(),
            misanswered: () => this.#misanswered(),
          }),
    };
  }

  #sever(engine: Engine): () => void {
    const relays = this.#relays.get(engine) ?? [];
    for (const relay of relays) relay.cut();
    return () => {
      for (const relay of relays) relay.mend();
    };
  }

  async #open(): Promise<Engine> {
    const targets = this.#servers!.ports;
    const relays = this.#direct
      ? []
      : await Promise.all(targets.map((target) => Relay.start(target)));
    const ports = this.#direct ? targets : relays.map((relay) => relay.port);
    const endpoints = ports.map((port) => `127.0.0.1:${port}`);
    const engine = new EtcdEngine(resolveEtcd({ endpoints, prefix: this.#prefix }));
    const close = engine.close.bind(engine);
    engine.close = async () => {
      await close();
      this.#relays.delete(engine);
      await Promise.all(relays.map((relay) => relay.close()));
    };
    this.#relays.set(engine, relays);
    await engine.open();
    return engine;
  }

  async #relayed(): Promise<Relayed> {
    const engine = await this.#open();
    const relays = this.#relays.get(engine)!;
    return {
      engine,
      hold: () => relays.forEach((relay) => void relay.hold()),
      deliver: () => relays.forEach((relay) => void relay.deliver()),
    };
  }

  async #misanswered(): Promise<Misanswered> {
    const filters = this.#servers!.ports.map((port) => new GarblingRelay(port).start());
    const relays = await Promise.all(filters);
    const endpoints = relays.map(({ endpoint }) => endpoint);
    const engine = new EtcdEngine(resolveEtcd({ endpoints, prefix: this.#prefix }));
    const close = engine.close.bind(engine);
    engine.close = async () => {
      await close();
      await Promise.all(relays.map((relay) => relay[Symbol.asyncDispose]()));
    };
    const answerWith = (shape: string | null) => {
      for (const relay of relays) relay.answerWith(shape);
    };
    return { engine, shapes: GARBLED_SHAPES, answerWith };
  }

  /**
   * Read from the keys and the remaining time of their leases, which etcd counts in whole seconds.
   */
  async #truth(resource: string): Promise<TrueGrant[]> {
    const keyRange = new Keys(this.#prefix).rangeOf(resource);
    const { holders } = new Queue(found(await this.#txn([range(keyRange)]), 0));
    const leases = this.#leases();
    return Promise.all(
      holders.map(async (holder) => {
        const { mostMs } = await leases.remaining(holder.lease, Infinity);
        return { token: tokenOf(holder), remainingMs: mostMs };
      }),
    );
  }

  /** Only reads the leases of others. */
  #leases(): Leases {
    return new Leases(this.#admin!, () => "never used");
  }

  async #reset(): Promise<void> {
    const { start, end } = new Keys(this.#prefix).all;
    const request_delete_range = { key: encode(start), range_end: encode(end) };
    await this.#txn([{ request_delete_range }]);
  }

  /**
   * Moves grants and markers to leases that end so much earlier. Deletes those that would have
   * ended, as an expiry does. Waiters stay.
   */
  async #age(keyRange: KeyRange, ms: number): Promise<void> {
    const deadline = performance.now() + 1e9;
    const leases = this.#leases();
    const ops: Op[] = [];
    for (const kv of found(await this.#txn([range(keyRange)]), 0)) {
      if (isWaiting(kv)) continue;
      const leftMs = (await leases.remaining(kv.lease, deadline)).mostMs - ms;
      if (leftMs <= 0) ops.push(del(kv.key));
      else ops.push(put(kv.key, null, (await leases.expiring(leftMs, deadline)).id));
    }
    if (ops.length > 0) await this.#txn(ops);
  }

  #txn(success: readonly Op[]): Promise<RawTxn> {
    const txn = { compare: [], success, failure: [] };
    return this.#admin!.txn(txn, { deadline: Infinity, repeatable: true });
  }
}

/** For the table of engines, which only asks which laws apply. */
export function harness(): Harness {
  return new Lane(singleServer).harness();
}

export async function singleServer(): Promise<Servers> {
  const server: EtcdServer = await startEtcd();
  return {
    ports: [server.port],
    restart: () => server.restart(),
    stop: () => server.stop(),
  };
}

function isWaiting(kv: KeyValue): boolean {
  return readRecord(kv)?.claimed === false;
}

function encode(plain: string): string {
  return Buffer.from(plain).toString("base64");
}
