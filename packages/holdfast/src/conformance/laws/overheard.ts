import assert from "node:assert";
import type { Engine, Queued } from "../../engine.js";

/** Records every "queued" answer to an enqueue of this engine. */
export function overheard(engine: Engine): { engine: Engine; queued: Queued[] } {
  const queued: Queued[] = [];
  const { queue } = engine;
  assert(queue, "a law that uses the queue must say that it needs one");
  const enqueue: typeof queue.enqueue = async (claim, call) => {
    const answer = await queue.enqueue(claim, call);
    if (answer.kind === "queued") queued.push(answer);
    return answer;
  };
  const heard = Object.create(engine, {
    queue: { value: { ...queue, enqueue, heartbeat: queue.heartbeat.bind(queue) } },
  }) as Engine;
  return { engine: bound(heard, engine), queued };
}

/** Binds methods to the original engine, because private fields live there. */
function bound(view: Engine, original: Engine): Engine {
  const verbs = ["tryAcquire", "renew", "release", "check", "revoke", "inspect", "list", "close"];
  for (const verb of verbs as (keyof Engine)[]) {
    const method = original[verb];
    if (typeof method !== "function") continue;
    Object.defineProperty(view, verb, { value: (method as () => unknown).bind(original) });
  }
  return view;
}
