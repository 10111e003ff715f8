import { systemClock } from "../../clock.js";
import type { EtcdClient, Stream } from "./client.js";
import type { Room } from "./keys.js";
import { base64, type Header, text } from "./requests.js";

// A stream takes no more watches once it is open. Beyond so many, one takes over from all.
const MOST_STREAMS = 4;
const AGAIN_MS = 100;

/** What somebody waits to see. */
export interface Interest {
  readonly key: string;
  readonly end?: string;
  readonly of: "deletes" | "puts";
  /** The first revision that could hold it. */
  from: bigint;
  /** The value that was put, or null: it is gone, or what happened can no longer be told. */
  onEvent(value: string | null): void;
}

interface Open {
  stream: Stream;
  readonly interests: Map<string, Interest>;
}

interface Message {
  readonly result?: {
    readonly header?: Header;
    readonly watch_id?: string;
    readonly canceled?: boolean;
    readonly events?: readonly { readonly kv: { readonly value?: string } }[];
  };
}

/**
 * Watches of this process on few connections. They make waiting fast and nothing more: what they miss
 * is found by heartbeats. A stream that ends is opened again from where it was.
 */
export class Watches {
  readonly #client: EtcdClient;
  readonly #interests = new Set<Interest>();
  readonly #streams = new Set<Open>();
  readonly #added = new Set<Interest>();
  #planned = false;
  #closed = false;

  constructor(client: EtcdClient) {
    this.#client = client;
    client.onMove = () => this.#startAgain();
  }

  add(interest: Interest): void {
    if (this.#closed) return;
    this.#interests.add(interest);
    this.#added.add(interest);
    this.#plan();
  }

  drop(interest: Interest): void {
    this.#interests.delete(interest);
    this.#added.delete(interest);
    for (const open of this.#streams) {
      const wanted = [...open.interests.values()].some((one) => this.#interests.has(one));
      if (!wanted) this.#end(open);
    }
  }

  close(): void {
    this.#closed = true;
    this.#interests.clear();
    this.#added.clear();
    for (const open of this.#streams) this.#end(open);
  }

  /** All that were added in one turn of the event loop travel together. */
  #plan(): void {
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(() => {
      this.#planned = false;
      if (this.#added.size === 0) return;
      if (this.#streams.size < MOST_STREAMS) this.#open([...this.#added]);
      else this.#startAgain();
      this.#added.clear();
    });
  }

  #startAgain(): void {
    const old = [...this.#streams];
    this.#added.clear();
    if (this.#interests.size > 0) this.#open([...this.#interests]);
    for (const open of old) this.#end(open);
  }

  #open(interests: readonly Interest[]): void {
    const numbered = new Map(interests.map((interest, i) => [String(i + 1), interest]));
    const body = [...numbered].map(([id, interest]) => JSON.stringify(creation(id, interest)));
    const open: Open = { stream: { close: () => {} }, interests: numbered };
    this.#streams.add(open);
    open.stream = this.#client.stream(
      body.join("\n"),
      (message) => this.#hear(open, message as Message),
      () => this.#lost(open),
    );
  }

  #hear({ interests }: Open, { result }: Message): void {
    const interest = interests.get(result?.watch_id ?? "");
    if (result === undefined || interest === undefined || !this.#interests.has(interest)) return;
    // Canceled: what it should have begun with was compacted away. Whoever waits must look by itself.
    if (result.canceled) {
      this.drop(interest);
      interest.onEvent(null);
      return;
    }
    // Not at its creation: what lies between its beginning and that is still to come.
    if (result.events !== undefined) interest.from = BigInt(result.header?.revision ?? 0) + 1n;
    for (const { kv } of result.events ?? []) {
      interest.onEvent(kv.value === undefined ? null : text(kv.value));
    }
  }

  #lost(open: Open): void {
    if (!this.#streams.delete(open)) return;
    const again = () => {
      if (this.#closed) return;
      for (const one of open.interests.values()) if (this.#interests.has(one)) this.#added.add(one);
      if (this.#added.size > 0) this.#plan();
    };
    systemClock.timer(AGAIN_MS, again, false);
  }

  #end(open: Open): void {
    this.#streams.delete(open);
    open.stream.close();
  }
}

export function inRoom(room: Room): Pick<Interest, "key" | "end"> {
  return { key: room.start, end: room.end };
}

function creation(id: string, { key, end, of, from }: Interest): object {
  return {
    create_request: {
      key: base64(key),
      ...(end === undefined ? {} : { range_end: base64(end) }),
      start_revision: String(from),
      filters: [of === "puts" ? "NODELETE" : "NOPUT"],
      watch_id: id,
    },
  };
}
