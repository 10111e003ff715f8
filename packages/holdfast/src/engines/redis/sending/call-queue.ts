import { systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import { batchesOf } from "./batches.js";
import type { Operation } from "./operation.js";
import type { ScriptCaller } from "./script-caller.js";

/**
 * One call at a time for each slot. A connection that waits for replicas can do nothing else; what is
 * asked meanwhile goes along with the next call.
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
 * Takes out those whose callers have given up. While a connection hangs, they would pile up without end,
 * and what is sent when it goes on would find tombstones that are over.
 */
function dropLate(queue: Operation[]): void {
  const now = systemClock.now();
  if (!queue.some(({ until }) => until <= now)) return;
  for (const operation of queue.splice(0)) {
    if (operation.until > now) queue.push(operation);
    else operation.reject(unsent());
  }
}

function unsent(): EngineError {
  return new EngineError(
    "the connection that waits for replicas was busy: it was not sent in time",
    { effect: "none", retryable: true },
  );
}
