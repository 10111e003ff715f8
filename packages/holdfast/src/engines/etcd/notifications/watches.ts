import { systemClock } from "../../../core/runtime/clock.js";
import type { EtcdClient, Stream } from "../client/client.js";
import { Reopening } from "../client/reopening.js";
import { base64, found, get, text } from "../client/requests.js";
import type { WatchMessage } from "../client/shapes.js";
import type { KeyRange } from "../queue/keys.js";
import type { Ahead } from "../queue/queue.js";

// A connection each. Whoever is not watched for has its heartbeat.
const MOST_STREAMS = 256;
const CHECK_MS = 5_000;
const MOST_GETS = 100;

/** A waiter wants to know when one key has ended, known by its creation too. */
export interface EndOfKey extends Ahead {
  readonly keyRange: KeyRange;
  onEnd(): void;
}

/** One resource in which a waiter of this engine waits for keys to end. */
interface Watched {
  readonly keyRange: KeyRange;
  readonly interests: Set<EndOfKey>;
  /** Those whose key may have ended before the watch stood. */
  readonly unchecked: Set<EndOfKey>;
  /** Of one key where one is waited for, of all in the key range where several are. */
  stream: { readonly key: string | null; readonly socket: Stream; stands: boolean } | null;
}

/**
 * Watches of this process. They make waiting fast and nothing more: what they miss is found by
 * heartbeats.
 *
 * A stream of the gateway carries one watch: etcd reads what is sent with it only until its first
 * answer. So all who wait in one key range share one.
 *
 * etcd tells at once what happens after a watch was made, and what happened before only in a round
 * every 100 ms. So the end of a key is watched from now on, and whether the key was still there is
 * asked once the watch stands: whatever ends it later is told. That asks nothing of history, so no
 * compaction can take it away.
 */
export class Watches {
  readonly #client: EtcdClient;
  readonly #watched = new Map<string, Watched>();
  readonly #reopening = new Reopening();
  readonly #reopen = () => this.#openAgain();
  /** Whether those that stand are at a member that was left. */
  #moved = false;
  #closed = false;

  constructor(client: EtcdClient) {
    this.#client = client;
  }

  add(interest: EndOfKey): void {
    if (this.#closed) return;
    const { keyRange } = interest;
    const fresh = { keyRange, interests: new Set<EndOfKey>(), unchecked: new Set<EndOfKey>() };
    const watched = this.#watched.get(keyRange.start) ?? { ...fresh, stream: null };
    const { stream, interests } = watched;
    this.#watched.set(keyRange.start, watched);
    interests.add(interest);
    watched.unchecked.add(interest);
    if (stream === null || (stream.key !== null && stream.key !== interest.key)) {
      this.#open(watched);
    } else if (stream.stands && watched.unchecked.size === 1) {
      this.#checkSoon(watched);
    }
  }

  drop(interest: EndOfKey): void {
    const watched = this.#watched.get(interest.keyRange.start);
    if (!watched?.interests.delete(interest)) return;
    watched.unchecked.delete(interest);
    if (watched.interests.size > 0) return;
    this.#watched.delete(interest.keyRange.start);
    watched.stream?.socket.close();
    watched.stream = null;
  }

  /** Calls go to another member from now on. In an election they may do so many times a second. */
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
        ? { key: base64(keyRange.start), range_end: base64(keyRange.end) }
        : { key: base64(key) };
    for (const interest of interests) unchecked.add(interest);
    const isCurrent = () => watched.stream === stream;
    const socket = this.#client.stream(
      creation({ ...what, filters: ["NOPUT"] }),
      (message) => isCurrent() && this.#hear(watched, message),
      () => isCurrent() && this.#lost(watched),
    );
    const stream = { key, socket, stands: false };
    watched.stream = stream;
    old?.socket.close();
  }

  get #streams(): number {
    let open = 0;
    for (const { stream } of this.#watched.values()) if (stream !== null) open++;
    return open;
  }

  #hear(watched: Watched, { created, canceled, events = [] }: WatchMessage): void {
    if (created && !canceled && watched.stream !== null) {
      this.#reopening.stands();
      watched.stream.stands = true;
      this.#checkSoon(watched);
    }
    for (const { kv } of events) this.#deleted(watched, text(kv.key), BigInt(kv.mod_revision));
    if (canceled) this.#lost(watched);
  }

  /** A member that lags tells of deletions from before the key that is waited for was created. */
  #deleted(watched: Watched, key: string, revision: bigint): void {
    this.#ended(watched, key, ({ created }) => created < revision);
  }

  #ended(watched: Watched, key: string, isMeant: (interest: EndOfKey) => boolean): void {
    for (const interest of [...watched.interests]) {
      if (interest.key !== key || !isMeant(interest)) continue;
      this.drop(interest);
      interest.onEnd();
    }
  }

  /** All that came in one turn of the event loop are asked about together. */
  #checkSoon(watched: Watched): void {
    setImmediate(() => {
      const keys = [...new Set([...watched.unchecked].map(({ key }) => key))];
      watched.unchecked.clear();
      for (let i = 0; i < keys.length; i += MOST_GETS) {
        // Whoever is not told now has its heartbeat.
        this.#check(watched, keys.slice(i, i + MOST_GETS)).catch(() => {});
      }
    });
  }

  async #check(watched: Watched, keys: readonly string[]): Promise<void> {
    const txn = { compare: [], success: keys.map(get), failure: [] };
    const options = { deadline: systemClock.now() + CHECK_MS, repeatable: true };
    const answer = await this.#client.txn(txn, options);
    for (const [i, key] of keys.entries()) {
      // Another program may have used the key again already.
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
