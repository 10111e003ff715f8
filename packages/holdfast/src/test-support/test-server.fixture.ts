import { after, before, test } from "node:test";
import { Relay } from "@holdfast/servers";
import type { Engine } from "../engine.js";
import { Locks } from "../locks.js";
import { Child } from "./child.fixture.js";
import { until } from "./until.fixture.js";

const CLOSING_MS = 2_000;

type Close = () => unknown;

/**
 * What a test opens on servers. Closed in this order: processes, locks, engines, and what these
 * used.
 */
export class TestServer implements AsyncDisposable {
  readonly #children: Close[] = [];
  readonly #locks: Close[] = [];
  readonly #engines: Close[] = [];
  readonly #clients: Close[] = [];

  locksOn(engine: Engine): Locks {
    const locks = new Locks(engine);
    this.#locks.push(() => locks.close());
    return locks;
  }

  protected closesEngine<E extends Engine>(engine: E): E {
    this.#engines.push(() => engine.close());
    return engine;
  }

  /** Closed after all engines. */
  protected closesClient(close: Close): void {
    this.#clients.push(close);
  }

  protected async relayTo(port: number): Promise<Relay> {
    const relay = await Relay.start(port);
    this.closesClient(() => relay.close());
    return relay;
  }

  protected start(program: URL, args: readonly string[]): Child {
    const child = new Child(program, args);
    this.#children.push(() => child.kill());
    return child;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    // What is cut off or refused cannot be closed in order, and need not be.
    const enough = new Promise((go) => {
      timer = setTimeout(go, CLOSING_MS);
    });
    for (const closers of [this.#children, this.#locks, this.#engines, this.#clients]) {
      await Promise.race([Promise.allSettled(closers.map(async (close) => close())), enough]);
    }
    clearTimeout(timer);
  }
}

export type DefineTests<T> = (
  it: (title: string, part: (opened: T) => Promise<void>) => void,
) => void;

/** How to start a server for tests, and open what they use on it. */
export interface ServerOfTests<S, T> {
  start(): Promise<S>;
  prepare(server: S): Promise<void>;
  open(server: S): T;
}

/** Runs tests one after the other on one server, each with its own resource names. */
export function describeWithServer<S extends { stop(): unknown }, T extends AsyncDisposable>(
  { start, prepare, open }: ServerOfTests<S, T>,
  define: DefineTests<T>,
): void {
  let server: S;
  before(async () => {
    server = await start();
    await prepare(server);
  });
  after(() => server.stop());
  define((title, part) =>
    test(title, async () => {
      await using opened = open(server);
      await part(opened);
    }));
}

/** Waits until this many are in the queue at the server. */
export async function untilWaiters(locks: Locks, resource: string, count: number): Promise<void> {
  await until(`${count} wait for ${resource}`, async () => {
    const { waiters } = await locks.inspect(resource);
    return waiters.length === count;
  });
}
