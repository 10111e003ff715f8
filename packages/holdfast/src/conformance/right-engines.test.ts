// Engines that differ from the memory engine in ways that the contract allows. The laws must pass.
import { test } from "node:test";
import type { Engine } from "../engine.js";
import { settleEach } from "../engine-kit/settle-each.js";
import { findLaw } from "./index.js";
import { altered } from "./wrong-engines/altered.js";
import { memoryHarness } from "./wrong-engines/memory-harness.js";

/** Answers batches entry by entry, also when it was closed. */
function failsEachEntry(inner: Engine): Engine {
  const batch = <R, A>(refs: readonly R[], ask: (ref: readonly R[]) => Promise<readonly A[]>) =>
    settleEach(refs, async (ref) => (await ask([ref]))[0]!);
  return altered(inner, {
    renew: (refs, call) => batch(refs, (one) => inner.renew(one, call)),
    release: (refs, call) => batch(refs, (one) => inner.release(one, call)),
    queue: {
      ...inner.queue!,
      heartbeat: (refs, call) => batch(refs, (one) => inner.queue!.heartbeat(one, call)),
    },
  });
}

test("L11.1 accepts failed entries of a batch from a closed engine", () =>
  findLaw("L11.1").run(memoryHarness(failsEachEntry)));
