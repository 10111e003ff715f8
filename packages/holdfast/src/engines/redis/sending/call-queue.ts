import { systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { batchesOf } from "./batches.js";
import type { Operation } from "./operation.js";
import type { ScriptCaller } from "./script-caller.js";

/**
 * Sends one call at a time for each slot, because WAIT blocks the connection. Operations that come
 * in between travel with the next call.
 */
export class CallQueue {
  readonly #caller: ScriptCaller;
  readonly #bySlot = new Map<number, Operation[]>();

  constructor(caller: ScriptCaller) {
    this.#caller = caller;
  }

  async send(slot: number, operations: readonly Operation[]): Promise<void> {
    const queue = this.#bySlot.get(slot);
    if (queue !== undefined) {
      for (const operation of operations) queue.push(operation);
      return;
    }
    const own = [...operations];
    this.#bySlot.set(slot, own);
    while (own.length > 0) {
      const batch = batchesOf(own)[0]!;
      await this.#caller.send(own.splice(0, batch.length));
      dropLate(own);
    }
    this.#bySlot.delete(slot);
  }
}

/**
 * Removes the operations whose callers have given up. While a connection hangs, they would pile up
 * without end. When it recovers, they would be sent so late that their tombstones might be over.
 */
function dropLate(queue: Operation[]): void {
  const now = systemClock.now();
  if (!queue.some(({ until }) => until <= now)) return;
  for (const operation of queue.splice(0)) {
    if (operation.until > now) queue.push(operation);
    else operation.reject(notSentInTime());
  }
}

function notSentInTime(): EngineError {
  return new EngineError("not sent in time: the connection that waits for replicas was busy", {
    effect: "none",
    retryable: true,
  });
}
