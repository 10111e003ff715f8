import type { Engine } from "../../engine.js";
import { EngineError } from "../../errors.js";
import type { Misanswered, Relayed } from "../harness.js";
import { gate } from "../timing.js";
import { altered } from "./altered.js";

type Wrap = <Of extends unknown[], T>(ask: (...of: Of) => Promise<T>) => (...of: Of) => Promise<T>;

/** Every verb of an engine, each called through the same wrapper. */
function everyVerb(inner: Engine, wrap: Wrap): Engine {
  const { queue } = inner;
  return altered(inner, {
    tryAcquire: wrap((claim, call) => inner.tryAcquire(claim, call)),
    renew: wrap((grants, call) => inner.renew(grants, call)),
    release: wrap((grants, call) => inner.release(grants, call)),
    check: wrap((sequence, call) => inner.check(sequence, call)),
    revoke: wrap((sequence, call) => inner.revoke(sequence, call)),
    inspect: wrap((resource, call) => inner.inspect(resource, call)),
    list: wrap((filter, call) => inner.list(filter, call)),
    ...(queue && {
      queue: {
        enqueue: wrap((claim, call) => queue.enqueue(claim, call)),
        heartbeat: wrap((waiters, call) => queue.heartbeat(waiters, call)),
        withdraw: wrap((waiter, call) => queue.withdraw(waiter, call)),
        onGrant: (listener) => queue.onGrant(listener),
      },
    }),
  });
}

/** A client that delays its own calls: for backends that are reached without a wire. */
export function relayedCalls(inner: Engine): Relayed {
  let held: ReturnType<typeof gate> | null = null;
  const wrap: Wrap =
    (ask) =>
    async (...of) => {
      if (held !== null) await held.opened;
      return ask(...of);
    };
  return {
    engine: everyVerb(inner, wrap),
    hold() {
      held = gate();
    },
    deliver() {
      held?.open();
      held = null;
    },
  };
}

/** The error with which a correct engine answers to a reply that it does not understand. */
export class GarbledAnswer extends EngineError {
  constructor(shape: string) {
    super(`the answer is ${shape}`, { effect: "unknown", retryable: true });
  }
}

/** The request is carried out, and its answer has a wrong shape. */
export function garbledAnswers(inner: Engine): Misanswered {
  let shape: string | null = null;
  const wrap: Wrap =
    (ask) =>
    async (...of) => {
      const garbled = shape;
      const answer = await ask(...of);
      if (garbled !== null) throw new GarbledAnswer(garbled);
      return answer;
    };
  return {
    engine: everyVerb(inner, wrap),
    shapes: ["a string", "a short list", "null"],
    answerWith(wrong) {
      shape = wrong;
    },
  };
}
