import { randomBytes } from "node:crypto";
import {
  type Relay,
  startZooKeeper,
  type ZooKeeperOptions,
  type ZooKeeperServer,
} from "@holdfast/servers";
import { systemClock } from "../../../../core/runtime/clock.js";
import type { Engine } from "../../../../engine.js";
import type { Locks } from "../../../../locks.js";
import { TestServer, untilWaiters } from "../../../../test-support/test-server.fixture.js";
import { type ZookeeperEngineOptions, zookeeperEngine } from "../../index.js";
import { getChildren, getData, type Operation, remove } from "../../wire/operations.js";
import { Session } from "../../wire/session.js";

type Options = Partial<ZookeeperEngineOptions>;

/** A ZooKeeper for a test file, and clients on it that are closed with it. */
export class ZookeeperTestServer extends TestServer {
  readonly server: ZooKeeperServer;
  readonly untilWaiters = untilWaiters;
  #admin: Session | null = null;

  private constructor(server: ZooKeeperServer) {
    super();
    this.server = server;
  }

  static async start(options?: ZooKeeperOptions): Promise<ZookeeperTestServer> {
    return new ZookeeperTestServer(await startZooKeeper(options));
  }

  engine(options: Options = {}): Engine {
    return this.closesEngine(zookeeperEngine({ hosts: this.server.hosts, ...options }));
  }

  /** Locks with sessions and connections of their own, as in another process. */
  locks(options: Options = {}): Locks {
    return this.locksOn(this.engine(options));
  }

  relay(): Promise<Relay> {
    return this.relayTo(this.server.port);
  }

  session(options: Partial<ConstructorParameters<typeof Session>[0]> = {}, onEnd = () => {}) {
    const hosts = [{ host: "127.0.0.1", port: this.server.port }];
    const spec = { hosts, timeoutMs: 4_000, tls: null, digest: null, ...options };
    const session = new Session(spec, onEnd);
    this.closesClient(() => session.close());
    return session;
  }

  /** Sends a request without the engine. */
  async ask<T>(operation: Operation<T>): Promise<T | null> {
    this.#admin ??= this.session();
    return (await this.#admin.ask(operation, systemClock.now() + 5_000)).value;
  }

  async children(path: string): Promise<string[]> {
    return (await this.ask(getChildren(path)))?.names.sort() ?? [];
  }

  async data(path: string): Promise<string> {
    return (await this.ask(getData(path)))?.data.toString() ?? "";
  }

  async deleteChildren(path: string): Promise<void> {
    for (const name of await this.children(path)) await this.ask(remove(`${path}/${name}`));
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await this.server.stop();
  }
}

/** A name that no other test of the file uses. */
export function fresh(name = "r"): string {
  return `${name}-${randomBytes(4).toString("hex")}`;
}
