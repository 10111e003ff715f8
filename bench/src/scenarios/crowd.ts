import { checkExclusion } from "../exclusion.js";
import { pause } from "../instant.js";
import { unpack } from "../section-log.js";
import type { Scenario } from "../suite.js";

const WAITERS = 500;
const SETTLE_MS = 300;
const DRAIN_MS = 10_000;

export const crowd: Scenario = {
  id: "crowd",
  title: `${WAITERS} waiters behind one holder`,
  about: `What ${WAITERS} waiters of one process cost while nothing happens, and how long until all had their turn.`,
  reach: "process",
  columns: [
    { key: "drainMs", title: "drain all", kind: "ms" },
    { key: "served", title: "served", kind: "count" },
    { key: "cpu", title: "idle CPU", kind: "percent" },
    { key: "calls", title: "idle calls", kind: "rate" },
  ],
  better: "less",
  async measure(stage) {
    // The holder lives in a process of its own where the lock reaches that far.
    const apart = stage.contender?.reach === "host";
    const workers = await stage.workers(apart ? 2 : 1, { counting: true });
    const holder = workers[0]!;
    const waiting = workers.at(-1)!;
    const heldSince = await holder.call("acquire");
    await waiting.call("gather", WAITERS);
    await pause(Math.min(SETTLE_MS, stage.seconds * 1e3));
    const before = await waiting.call("usage");
    await pause(stage.seconds * 1e3);
    const after = await waiting.call("usage");

    const drained = waiting.call("drain", { forMs: DRAIN_MS });
    const leftAt = await holder.call("release");
    const sections = unpack((await drained).sections);
    const held = { waiter: -1, askedAt: heldSince, enteredAt: heldSince, leftAt };
    const [, ...all] = checkExclusion(
      stage.name,
      apart ? [[held], sections] : [[held, ...sections]],
    );
    const elapsedMs = after.at - before.at;
    return {
      // Where not all were served, this is less than the truth, and the next column says so.
      drainMs: all.length < WAITERS ? DRAIN_MS : all.at(-1)!.leftAt - leftAt,
      served: all.length,
      cpu: (100 * (after.cpuMs - before.cpuMs)) / elapsedMs,
      ...(after.calls === null || before.calls === null
        ? {}
        : { calls: (after.calls - before.calls) / (elapsedMs / 1e3) }),
    };
  },
};
