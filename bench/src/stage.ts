import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "./crew.js";
import type { Contender, Suite } from "./suite.js";

const open = new Set<Stage>();

/** What one measurement has to itself: a contender, an empty folder, fresh worker processes. */
export class Stage implements AsyncDisposable {
  readonly contender: Contender | null;
  readonly seconds: number;
  readonly folder: string;
  readonly #suite: Suite;
  readonly #workers: Worker[] = [];

  /** Without a contender, for what is measured without any lock. */
  constructor(suite: Suite, contender: Contender | null, seconds: number) {
    this.#suite = suite;
    this.contender = contender;
    this.seconds = seconds;
    this.folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
    open.add(this);
  }

  get name(): string {
    return this.contender?.name ?? "nothing";
  }

  /** Worker processes that have opened the contender. Processes of their own, so no row inherits another's heap. */
  async workers(count: number, { counting = false } = {}): Promise<Worker[]> {
    const started = Array.from({ length: count }, () => new Worker());
    this.#workers.push(...started);
    const place = { folder: this.folder, counting };
    const contender = this.contender?.id;
    if (contender === undefined) throw new Error("workers need a contender to open");
    const order = { suite: this.#suite.module, contender, place };
    await Promise.all(started.map((worker) => worker.call("open", order)));
    return started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    this.#remove();
  }

  /** For the end of the process, when nothing can be waited for. */
  abandon(): void {
    for (const worker of this.#workers) worker.kill();
    this.#remove();
  }

  #remove(): void {
    open.delete(this);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Ctrl-C in the middle of a measurement must leave neither processes nor files. */
export function abandonAll(): void {
  for (const stage of [...open]) stage.abandon();
}
