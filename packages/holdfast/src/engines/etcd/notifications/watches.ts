import { systemClock } from "../../../core/runtime/clock.js";
import type { EtcdClient, Stream } from "../client/client.js";
import { Reopening } from "../client/reopening.js";
import { found, fromBase64, get, toBase64 } from "../client/requests.js";
import type { WatchMessage } from "../client/shapes.js";
import type { KeyRange } from "../queue/keys.js";
import type { Predecessor } from "../queue/queue.js";

// Each stream needs a connection. A waiter without a watch relies on its heartbeat.
const MOST_STREAMS = 256;
const CHECK_MS = 5_000;
const MOST_GETS = 100;

/** A waiter wants to know when one key has ended, known by its creation too. */
export interface KeyInterest extends Predecessor {
  readonly keyRange: KeyRange;
  onEnd(): void;
}

/** One resource in which a waiter of this engine waits for keys to end. */
interface Watched {
  readonly keyRange: KeyRange;
  readonly interests: Set<KeyInterest>;
  /** Interests whose key may have ended before the watch was open. */
  readonly unchecked: Set<KeyInterest>;
  /** Watches one key if only one is waited for, else the whole key range. */
  stream: { readonly key: string | null; readonly socket: Stream; isOpen: boolean } | null;
}

/**
 * The watches of this process. They only make waiting fast: heartbeats find what they miss.
 *
 * A stream of the gateway carries one watch: etcd reads the request body only until its first
 * answer. So all waiters of one resource share a stream.
 *
 * etcd reports events after the creation of a watch at once, and earlier events only in a round
 * every 100 ms. So a watch starts from now, and once it is open the key is read: a later end is
 * reported. This needs no history, so no compaction can break it.
 */
export class Watches {
  readonly #client: EtcdClient;
  readonly #watched = new Map<string, Watched>();
  readonly #reopening = new Reopening();
  readonly #reopen = () => this.#openAgain();
  /** Whether open streams are at a member that the client has left. */
  #moved = false;
  #closed = false;

  constructor(client: EtcdClient) {
    this.#client = client;
  }

  add(interest: KeyInterest): void {
    if (this.#closed) return;
    const { keyRange } = interest;
    const fresh = {
      keyRange,
      interests: new Set<KeyInterest>(),
      unchecked: new Set<KeyInterest>(),
    };
    const watched = this.#watched.get(keyRange.start) ?? { ...fresh, stream: null };
    const { stream, interests } = watched;
    this.#watched.set(keyRange.start, watched);
    interests.add(interest);
    watched.unchecked.add(interest);
    if (stream === null || (stream.key !== null && stream.key !== interest.key)) {
      this.#open(watched);
    } else if (stream.isOpen && watched.unchecked.size === 1) {
      this.#checkSoon(watched);
    }
  }

  drop(interest: KeyInterest): void {
    const watched = this.#watched.get(interest.keyRange.start);
    if (!watched?.interests.delete(interest)) return;
    watched.unchecked.delete(interest);
    if (watched.interests.size > 0) return;
    this.#watched.delete(interest.keyRange.start);
    watched.stream?.socket.close();
    watched.stream = null;
  }

  /** The client now uses another member. During an election this may happen many times a second. */
  move(): void {
    this.#moved = true;
    this.#reopening.later(this.#reopen);
  }

  close(): void {
    this.#closed = true;
    this.#reopening.close();
    for (const { stream } of this.#watched.values()) stream?.socket.close();
    this.#watched.clear();
  }

  #open(watched: Watched): void {
    const { keyRange, interests, unchecked, stream: old } = watched;
    if (old === null && this.#streams >= MOST_STREAMS) return;
    const keys = new Set([...interests].map(({ key }) => key));
    const [only] = keys;
    const key = keys.size === 1 ? only! : null;
    const what =
      key === null
        ? { key: toBase64(keyRange.start), range_end: toBase64(keyRange.end) }
        : { key: toBase64(key) };
    for (const interest of interests) unchecked.add(interest);
    const isCurrent = () => watched.stream === stream;
    const socket = this.#client.stream(
      creation({ ...what, filters: ["NOPUT"] }),
      (message) => isCurrent() && this.#onMessage(watched, message),
      () => isCurrent() && this.#lost(watched),
    );
    const stream = { key, socket, isOpen: false };
    watched.stream = stream;
    old?.socket.close();
  }

  get #streams(): number {
    let open = 0;
    for (const { stream } of this.#watched.values()) if (stream !== null) open++;
    return open;
  }

  #onMessage(watched: Watched, { created, canceled, events = [] }: WatchMessage): void {
    if (created && !canceled && watched.stream !== null) {
      this.#reopening.opened();
      watched.stream.isOpen = true;
      this.#checkSoon(watched);
    }
    for (const { kv } of events)
      this.#deleted(watched, fromBase64(kv.key), BigInt(kv.mod_revision));
    if (canceled) this.#lost(watched);
  }

  /**
   * A member that lags may report a deletion from before the creation of the key that is waited
   * for.
   */
  #deleted(watched: Watched, key: string, revision: bigint): void {
    this.#ended(watched, key, ({ created }) => created < revision);
  }

  #ended(watched: Watched, key: string, isMeant: (interest: KeyInterest) => boolean): void {
    for (const interest of [...watched.interests]) {
      if (interest.key !== key || !isMeant(interest)) continue;
      this.drop(interest);
      interest.onEnd();
    }
  }

  /** Interests of one turn of the event loop are read together. */
  #checkSoon(watched: Watched): void {
    setImmediate(() => {
      const keys = [...new Set([...watched.unchecked].map(({ key }) => key))];
      watched.unchecked.clear();
      for (let i = 0; i < keys.length; i += MOST_GETS) {
        // If this fails, the heartbeat finds out.
        this.#check(watched, keys.slice(i, i + MOST_GETS)).catch(() => {});
      }
    });
  }

  async #check(watched: Watched, keys: readonly string[]): Promise<void> {
    const txn = { compare: [], success: keys.map(get), failure: [] };
    const options = { deadline: systemClock.now() + CHECK_MS, repeatable: true };
    const answer = await this.#client.txn(txn, options);
    for (const [i, key] of keys.entries()) {
      // Another program may have created the key again already.
      const created = found(answer, i)[0]?.created;
      this.#ended(watched, key, (interest) => created === undefined || created > interest.created);
    }
  }

  #lost(watched: Watched): void {
    watched.stream?.socket.close();
    watched.stream = null;
    this.#reopening.later(this.#reopen);
  }

  #openAgain(): void {
    const all = this.#moved;
    this.#moved = false;
    for (const watched of this.#watched.values()) {
      if (all || watched.stream === null) this.#open(watched);
    }
  }
}

export function creation(create_request: object): string {
  return JSON.stringify({ create_request });
}
