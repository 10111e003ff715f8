import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Flaws } from "./run.js";

/** Seeds first, first + step, … below end. */
export interface Batch {
  readonly first: number;
  readonly end: number;
  readonly step: number;
  readonly flaws: Flaws;
}

export interface Tallied {
  readonly schedules: number;
  readonly grants: number;
  readonly simulatedMs: number;
  /** The smallest seed with a violation, among those that were played. */
  readonly broken: { readonly seed: number; readonly violation: string } | null;
}

const MOST_WORKERS = 2;

/** Plays many seeds in several threads. A thread stops at its first violation. */
export async function playMany({ first, end, step, flaws }: Batch): Promise<Tallied> {
  const workers = Math.min(MOST_WORKERS, availableParallelism());
  const parts = Array.from({ length: workers }, (_, i) =>
    inWorker({ first: first + i * step, end, step: step * workers, flaws }),
  );
  const done = await Promise.all(parts);
  const broken = done.flatMap((one) => (one.broken === null ? [] : [one.broken]));
  const sum = (of: (one: Tallied) => number) => done.reduce((total, one) => total + of(one), 0);
  return {
    schedules: sum((one) => one.schedules),
    grants: sum((one) => one.grants),
    simulatedMs: sum((one) => one.simulatedMs),
    broken: broken.sort((a, b) => a.seed - b.seed)[0] ?? null,
  };
}

function inWorker(batch: Batch): Promise<Tallied> {
  const file = fileURLToPath(new URL("worker.js", import.meta.url));
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, { workerData: batch });
    worker.once("message", resolve);
    worker.once("error", reject);
  });
}
