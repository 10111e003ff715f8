import { sleep, systemClock, type Timer } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { Address } from "../../redis/clients/address.js";
import { showAddress } from "../../redis/clients/address.js";
import { type Seam, seamOf } from "../../redis/clients/connection.js";
import { openAddress } from "../../redis/clients/open.js";

const AGAIN_MS = 1_000;
/** How long to wait for slow nodes once enough are connected. */
const GRACE_MS = 500;

/** A client of our own for one node. The node may be down at first: the connection opens later. */
export class LazyConnection implements Seam {
  readonly name: string;
  readonly #address: Address;
  #seam: Seam | null = null;
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
      this.#seam = seamOf(client);
      this.#end = close;
    } catch (error) {
      const again = () => void this.open().catch(() => {});
      if (!this.#closed) this.#again = systemClock.timer(AGAIN_MS, again, false);
      throw error;
    }
  }

  connection = (key: string, confirming: boolean) => this.#seam?.connection?.(key, confirming);
  script: Seam["script"] = (...args) => this.#opened((seam) => seam.script(...args));
  confirmed: Seam["confirmed"] = (...args) => this.#opened((seam) => seam.confirmed(...args));
  scan: Seam["scan"] = (...args) => this.#opened((seam) => seam.scan(...args));
  info: Seam["info"] = (...args) => this.#opened((seam) => seam.info(...args));

  subscribe: Seam["subscribe"] = (...args) => {
    if (this.#seam !== null) return this.#seam.subscribe(...args);
    return { ready: Promise.reject(this.#absence()), isOver: () => true, close: () => {} };
  };

  close(): void {
    this.#closed = true;
    this.#again?.cancel();
    this.#seam?.close();
    this.#end();
  }

  async #opened<T>(use: (seam: Seam) => Promise<T>): Promise<T> {
    if (this.#seam === null) throw this.#absence();
    return use(this.#seam);
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
  const seams = addresses.map((address) => new LazyConnection(address));
  const opening = seams.map((seam) => seam.open());
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
  if (opened >= enough) return seams;
  for (const seam of seams) seam.close();
  const [failure] = (await settled).filter((one) => one.status === "rejected");
  throw failure?.reason;
}
