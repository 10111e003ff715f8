import { sleep, systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { Address } from "../../redis/clients/address.js";
import { showAddress } from "../../redis/clients/address.js";
import { adaptClient, type RedisConnection } from "../../redis/clients/connection.js";
import { openAddress } from "../../redis/clients/open.js";

const AGAIN_MS = 1_000;
/** How long to wait for slow nodes once enough are connected. */
const GRACE_MS = 500;

/** A client of our own for one node. The node may be down at first: the connection opens later. */
export class LazyConnection implements RedisConnection {
  readonly name: string;
  readonly #address: Address;
  #connection: RedisConnection | null = null;
  #end: () => void = () => {};
  #again: Timer | null = null;
  #closed = false;

  constructor(address: Address) {
    this.#address = address;
    this.name = showAddress(address);
  }

  /** Rejects if the node cannot be reached at once, and goes on trying in the background. */
  async open(): Promise<void> {
    try {
      const { client, close } = await openAddress(this.#address);
      if (this.#closed) return close();
      this.#connection = adaptClient(client);
      this.#end = close;
    } catch (error) {
      const again = () => void this.open().catch(() => {});
      if (!this.#closed) this.#again = systemClock.timer(AGAIN_MS, again, false);
      throw error;
    }
  }

  connectionId = (key: string, waits: boolean) => this.#connection?.connectionId?.(key, waits);
  runScript: RedisConnection["runScript"] = (...args) =>
    this.#opened((connection) => connection.runScript(...args));
  runScriptAndWait: RedisConnection["runScriptAndWait"] = (...args) =>
    this.#opened((connection) => connection.runScriptAndWait(...args));
  scan: RedisConnection["scan"] = (...args) =>
    this.#opened((connection) => connection.scan(...args));
  info: RedisConnection["info"] = (...args) =>
    this.#opened((connection) => connection.info(...args));

  subscribe: RedisConnection["subscribe"] = (...args) => {
    if (this.#connection !== null) return this.#connection.subscribe(...args);
    return { ready: Promise.reject(this.#absence()), isOver: () => true, close: () => {} };
  };

  close(): void {
    this.#closed = true;
    this.#again?.cancel();
    this.#connection?.close();
    this.#end();
  }

  async #opened<T>(use: (connection: RedisConnection) => Promise<T>): Promise<T> {
    if (this.#connection === null) throw this.#absence();
    return use(this.#connection);
  }

  #absence(): EngineError {
    const message = `no connection to ${this.name} yet`;
    const reason = "unreachable";
    return new EngineError(message, { effect: "none", retryable: true, reason });
  }
}

/** Opens all connections. Enough of them must open now, and the others may open later. */
export async function openConnections(
  addresses: readonly Address[],
  enough: number,
): Promise<readonly LazyConnection[]> {
  const connections = addresses.map((address) => new LazyConnection(address));
  const opening = connections.map((connection) => connection.open());
  let opened = 0;
  const plenty = new Promise<void>((go) => {
    for (const one of opening) {
      one.then(
        () => ++opened === enough && go(),
        () => {},
      );
    }
  });
  const settled = Promise.allSettled(opening);
  await Promise.race([settled, plenty.then(() => sleep(systemClock, GRACE_MS, undefined))]);
  if (opened >= enough) return connections;
  for (const connection of connections) connection.close();
  const [failure] = (await settled).filter((one) => one.status === "rejected");
  throw failure?.reason;
}
