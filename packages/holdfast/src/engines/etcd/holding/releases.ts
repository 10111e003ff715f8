import type { Gone, Released, ReleaseRef } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { isLeaseGone } from "../client/failure.js";
import {
  del,
  found,
  nested,
  type Op,
  put,
  type RawTxn,
  range,
  valueAfter,
} from "../client/requests.js";
import type { Leases } from "../leases/leases.js";
import { IN_USE } from "../queue/key-record.js";
import { type Keys, markerOf } from "../queue/keys.js";

/** etcd takes 128 operations in a transaction by default, nested ones included, and 1.5 MiB. */
const MOST = 100;
const MOST_CHARACTERS = 20_000;

type Answer = Released | Gone;

interface Asked {
  readonly ref: ReleaseRef;
  readonly deadline: number;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/**
 * Ends grants and waiters. All releases of one turn of the event loop share one transaction. Each
 * is decided on its own: if the key is gone, the grant was lost, and so its marker stays.
 */
export class Releases {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #leases: Leases;
  #asked: Asked[] = [];

  constructor(client: EtcdClient, keys: Keys, leases: Leases) {
    this.#client = client;
    this.#keys = keys;
    this.#leases = leases;
  }

  release(ref: ReleaseRef, deadline: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#asked.length === 0) setImmediate(() => void this.#send());
      this.#asked.push({ ref, deadline, resolve, reject });
    });
  }

  async #send(): Promise<void> {
    const asked = this.#asked;
    this.#asked = [];
    for (const wave of waves(asked)) {
      await Promise.all(
        wave.map((batch) =>
          this.#carryOut(batch).catch((error: unknown) => {
            for (const { reject } of batch) reject(error);
          }),
        ),
      );
    }
  }

  async #carryOut(batch: readonly Asked[]): Promise<void> {
    const answer = await this.#attempt(batch).catch((error: unknown) => {
      if (!isLeaseGone(error)) throw error;
      this.#leases.forgetAll();
      return this.#attempt(batch);
    });
    for (const [i, { ref, resolve }] of batch.entries()) {
      const one: RawTxn = answer.responses?.[i]?.response_txn ?? { header: {} };
      const own = this.#keys.claimKey(ref.resource, ref.grantId);
      const others = found(one, 0).some(({ key }) => key !== own);
      resolve(
        one.succeeded
          ? { kind: "released" }
          : { kind: "gone", why: others ? "replaced" : "expired" },
      );
    }
  }

  async #attempt(batch: readonly Asked[]): Promise<RawTxn> {
    const deadline = Math.max(...batch.map((one) => one.deadline));
    const success: Op[] = [];
    for (const { ref } of batch) success.push(await this.#one(ref, deadline));
    const txn = { compare: [], success, failure: [] };
    return this.#client.txn(txn, { deadline, repeatable: false });
  }

  async #one({ resource, grantId, tombstoneMs }: ReleaseRef, deadline: number): Promise<Op> {
    const key = this.#keys.claimKey(resource, grantId);
    const tombstone: Op[] = [];
    if (tombstoneMs > 0) {
      const { id } = await this.#leases.ofTombstones(tombstoneMs, deadline);
      tombstone.push(put(this.#keys.tombstone(grantId), "", id));
    }
    return nested({
      // The former holder of a grant that was left behind must not end it.
      compare: [valueAfter(key, IN_USE)],
      success: [del(key), del(markerOf(key)), ...tombstone],
      failure: [range(this.#keys.rangeOf(resource), { limit: 1 }), ...tombstone],
    });
  }
}

/**
 * A second release of the same claim goes into the next transaction: etcd refuses a transaction
 * that writes one key twice, and the first release is the one that finds something to release.
 */
function waves(asked: readonly Asked[]): Asked[][][] {
  const all: Asked[][] = [];
  const times = new Map<string, number>();
  for (const one of asked) {
    const time = times.get(one.ref.grantId) ?? 0;
    times.set(one.ref.grantId, time + 1);
    const wave = all[time] ?? [];
    all[time] = wave;
    wave.push(one);
  }
  return all.map((wave) => {
    const batches: Asked[][] = [];
    let characters = 0;
    for (const one of wave) {
      characters += one.ref.resource.length;
      const last = batches.at(-1);
      if (last !== undefined && last.length < MOST && characters <= MOST_CHARACTERS) last.push(one);
      else {
        batches.push([one]);
        characters = one.ref.resource.length;
      }
    }
    return batches;
  });
}
