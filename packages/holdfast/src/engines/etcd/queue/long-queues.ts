import { systemClock } from "../../../core/runtime/clock.js";
import type { Claim } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { absent, countKeys, countOf, found, get, put } from "../client/requests.js";
import type { TrackedClaims, WaitingClaim } from "../holding/tracked-claims.js";
import { newRecord, readRecord, writeRecord } from "./key-record.js";
import { type Keys, markersIn } from "./keys.js";
import type { QueueAnswer } from "./queue-answer.js";
import { HEAD_SIZE, type QueueReader } from "./queue-reader.js";
import type { QueueTurns } from "./queue-turns.js";
import type { WaiterKeys } from "./waiter-keys.js";

/** A reading of a long queue can be used for this long without reading it again. */
const READ_WITHIN_MS = 10_000;
/** At most this many holders are read by key. */
export const MOST_HOLDERS = 16;

interface Tools {
  readonly client: EtcdClient;
  readonly keys: Keys;
  readonly queueReader: QueueReader;
  readonly turns: QueueTurns;
  readonly waiterKeys: WaiterKeys;
  readonly trackedClaims: TrackedClaims;
  readonly engineId: string;
}

/** Lets a claim enter a queue that is too long for each claim to read. */
export class LongQueues {
  readonly #tools: Tools;

  constructor(tools: Tools) {
    this.#tools = tools;
  }

  /** Our last waiter that is far behind in the queue of this claim. */
  lastWaiter({ resource, mode, limit }: Claim): WaitingClaim | null {
    let last: WaitingClaim | null = null;
    const now = systemClock.now();
    for (const waiting of this.#tools.trackedClaims.waiters) {
      const { ref, self, deletionSent } = waiting;
      if (ref.resource !== resource || !isFarBehind(waiting, now) || deletionSent) continue;
      const record = readRecord(self)!;
      if (mode === "shared" && (record.mode !== "shared" || record.limit !== limit)) continue;
      if (last === null || self.created > last.self.created) last = waiting;
    }
    return last;
  }

  /**
   * Enters the queue behind a waiter of ours. While that waiter exists and was not let in, nobody
   * behind it is let in. The known holders are read by key.
   */
  async enterBehind(
    claim: Claim,
    { self: ahead, holders, readAt }: WaitingClaim,
    lease: string,
    deadline: number,
  ): Promise<QueueAnswer> {
    const { client, keys, queueReader, turns, waiterKeys, engineId } = this.#tools;
    const { resource, grantId } = claim;
    const [keyRange, key] = [keys.rangeOf(resource), keys.claimKey(resource, grantId)];
    const tombstone = keys.tombstone(grantId);
    const value = writeRecord(newRecord(claim, engineId, false));
    const known = holders.slice(0, MOST_HOLDERS);
    const asked = [get(ahead.key), countKeys(keyRange), countKeys(markersIn(keyRange))];
    const success = [put(key, value, lease), ...asked, ...known.map((one) => get(one.key))];
    const answer = await client.txn(
      {
        compare: [absent(tombstone), absent(key)],
        success,
        failure: [get(tombstone), get(key)],
      },
      { deadline, repeatable: true },
    );
    if (!answer.succeeded) return turns.enteredBefore(resource, answer, lease, deadline);
    const revision = answer.header.revision ?? "0";
    const self = { key, value, created: BigInt(revision), modified: revision, lease };
    const still = known.filter((one, i) => found(answer, 4 + i)[0]?.created === one.created);
    const [before] = found(answer, 1);
    const waits = before?.created === ahead.created && readRecord(before)?.claimed === false;
    if (waits && still.length > 0) {
      const position = countOf(answer, 2) - countOf(answer, 3) - 1 - still.length;
      const place = { position, holders: still, before: [ahead], lastBefore: null, readAt };
      return { kind: "waits", self, ...place };
    }
    if (claim.mode === "shared") {
      const queue = await queueReader.queue(resource, deadline);
      await waiterKeys.refuseOtherLimit(queue, claim, self, deadline);
    }
    return turns.take(resource, self, deadline);
  }
}

/** Whether a waiter has so many before it that it need not read the queue now. */
export function isFarBehind({ position, readAt }: WaitingClaim, now: number): boolean {
  return position >= HEAD_SIZE && readAt >= now - READ_WITHIN_MS;
}
