import type { Requirement, Suite } from "../../measuring/suite.js";
import { crowd } from "../../scenarios/crowd.js";
import { handOver } from "../../scenarios/hand-over.js";
import { localWaiters } from "../../scenarios/local-waiters.js";
import { processWaiters } from "../../scenarios/process-waiters.js";
import { sequential } from "../../scenarios/sequential.js";
import { asyncMutex } from "./async-mutex.js";
import { memory, sqlite, sqliteStrict } from "./holdfast.js";
import { lockfileDefaults, lockfileEvery } from "./proper-lockfile.js";

const lockfile1 = lockfileEvery(1);
const lockfile5 = lockfileEvery(5);

/** At its best setting in this run, unless one is named. */
function againstLockfile(scenario: string, title: string, ...named: string[]): Requirement {
  const all = [lockfile1.id, lockfile5.id, lockfileDefaults.id];
  const against = named.length > 0 ? named : all;
  return { title, scenario, of: sqlite.id, against, atLeast: 5 };
}

/** What one machine needs no server for. */
export const suite: Suite = {
  name: "local",
  module: import.meta.url,
  contenders: [memory, sqlite, sqliteStrict, lockfile1, lockfile5, lockfileDefaults, asyncMutex],
  scenarios: [sequential, localWaiters, processWaiters, handOver, crowd],
  reference: lockfile5.id,
  requirements: [
    againstLockfile(localWaiters.id, "32 local waiters: sqlite against proper-lockfile"),
    againstLockfile(processWaiters.id, "4 processes × 8: sqlite against proper-lockfile"),
    // With its own pauses, as its users wait. One who looks every few milliseconds sees a change as
    // soon as anybody can, and keeps a core busy with it: the table shows both, the crowd the
    // price.
    againstLockfile(
      handOver.id,
      "hand-over, p50: sqlite against proper-lockfile with its pauses",
      lockfileDefaults.id,
    ),
    againstLockfile(crowd.id, "500 waiters, drain: sqlite against proper-lockfile"),
    {
      title: "32 local waiters: sqlite against memory",
      scenario: localWaiters.id,
      of: sqlite.id,
      against: [memory.id],
      atLeast: 0.5,
    },
  ],
};
