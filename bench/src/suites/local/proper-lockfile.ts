import fs, { closeSync, openSync } from "node:fs";
import { lock } from "proper-lockfile";
import type { Contender, OpenContext, Subject } from "../../measuring/suite.js";

const WAIT_MS = 60_000;

/** It waits by looking again. Looking this often is the best that its options allow. */
export function lockfileEvery(everyMs: number): Contender {
  const pauses = { minTimeout: everyMs, maxTimeout: everyMs, factor: 1 };
  return lockfile(`lockfile-${everyMs}ms`, `proper-lockfile, every ${everyMs} ms`, pauses);
}

/** With the pauses of its own defaults: 1 s, 2 s, 4 s and so on. */
export const lockfileDefaults: Contender = {
  ...lockfile("lockfile-defaults", "proper-lockfile, its pauses", {}),
  sitsOut: {
    sequential: "nobody waits here, so pauses make no difference",
    crowd: "pauses for 1, 2, 4, 8 s between looks, longer than this measures",
  },
};

function lockfile(id: string, name: string, pauses: Pauses): Contender {
  return {
    id,
    name,
    ours: false,
    reach: "host",
    async open({ folder, counting }: OpenContext): Promise<Subject> {
      const file = `${folder}/file`;
      closeSync(openSync(file, "a"));
      const counted = counting ? countingFs() : null;
      const options = {
        retries: { forever: true, maxRetryTime: WAIT_MS, ...pauses },
        ...(counted && { fs: counted.fs }),
      };
      return {
        acquire: () => lock(file, options),
        ...(counted && { calls: counted.calls }),
      };
    },
  };
}

interface Pauses {
  readonly minTimeout?: number;
  readonly maxTimeout?: number;
  readonly factor?: number;
}

/** The file system with its calls counted: they are what a look costs. */
function countingFs(): { fs: typeof fs; calls: () => number } {
  let calls = 0;
  const counted: Record<string, unknown> = { ...fs };
  for (const name of ["mkdir", "stat", "rmdir", "utimes", "realpath"] as const) {
    const ask = fs[name] as (...args: unknown[]) => void;
    counted[name] = (...args: unknown[]) => {
      calls++;
      ask(...args);
    };
  }
  return { fs: counted as typeof fs, calls: () => calls };
}
