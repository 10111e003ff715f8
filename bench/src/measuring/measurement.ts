import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BenchServer, Contender, Content, OpenContext, Suite } from "./suite.js";
import { Worker } from "./worker/worker-process.js";

const TTL_MS = 30_000;
const IDLE_MS = 3_600_000;
const open = new Set<Measurement>();

/** The limits of a run. */
export interface Extent {
  /** How long each row is measured. */
  readonly seconds: number;
  /** The most resources that a scenario may use. */
  readonly size: number;
  /** Only checks that everything works. Long parts are cut short. */
  readonly quick: boolean;
}

/** The surroundings of one measurement: a contender, an empty folder, a server, new processes. */
export class Measurement implements AsyncDisposable {
  readonly contender: Contender;
  readonly seconds: number;
  readonly size: number;
  readonly quick: boolean;
  readonly folder: string;
  readonly #suite: Suite;
  readonly #workers: Worker[] = [];
  readonly #owned: AsyncDisposable[] = [];
  #server: BenchServer | null = null;

  private constructor(suite: Suite, contender: Contender, extent: Extent) {
    this.#suite = suite;
    this.contender = contender;
    this.seconds = extent.seconds;
    this.size = extent.size;
    this.quick = extent.quick;
    this.folder = mkdtempSync(join(tmpdir(), "holdfast-bench-"));
    open.add(this);
  }

  static async open(suite: Suite, contender: Contender, extent: Extent): Promise<Measurement> {
    const stage = new Measurement(suite, contender, extent);
    try {
      stage.#server = (await suite.startTestServer?.()) ?? null;
    } catch (error) {
      stage.#remove();
      throw error;
    }
    return stage;
  }

  /** Opens another stage with its own server and processes, to compare the two in alternation. */
  another(): Promise<Measurement> {
    return Measurement.open(this.#suite, this.contender, this);
  }

  get name(): string {
    return this.contender.name;
  }

  /** The compiler needs time to optimise, and more time for a larger library. */
  get warmUpMs(): number {
    const quarterMs = this.seconds * 250;
    return this.quick ? quarterMs : (this.#suite.warmUpMs ?? quarterMs);
  }

  /** Null where the suite has no server. */
  get server(): BenchServer | null {
    return this.#server;
  }

  get requiredServer(): BenchServer {
    if (this.#server === null) throw new Error(`the suite ${this.#suite.name} has no server`);
    return this.#server;
  }

  get content(): Content {
    const { content } = this.requiredServer;
    if (content === undefined) throw new Error(`${this.#suite.name} does not look into its server`);
    return content;
  }

  /** How often the server was called so far; null where there is no server. */
  async calls({ renewing = false } = {}): Promise<number | null> {
    if (this.#server === null) return null;
    const { sends = [], renews = [] } = this.contender.traces ?? {};
    return this.#server.calls([...sends, ...(renewing ? renews : [])]);
  }

  /**
   * Starts worker processes that open the contender. They are new, so no row inherits another's
   * heap.
   */
  async workers(
    count: number,
    {
      counting = false,
      ttlMs = TTL_MS,
      idleMs = IDLE_MS,
      pipelining = false,
    }: Partial<Omit<OpenContext, "folder" | "url">> = {},
  ): Promise<Worker[]> {
    const started = Array.from({ length: count }, () => new Worker());
    this.#workers.push(...started);
    const where = { folder: this.folder, url: this.#server?.url ?? "" };
    const context = { ...where, counting, ttlMs, idleMs, pipelining };
    const order = { suite: this.#suite.module, contender: this.contender.id, context };
    await Promise.all(started.map((worker) => worker.call("open", order)));
    return started;
  }

  /** Registers something else that ends with this stage. */
  own<T extends AsyncDisposable>(thing: T): T {
    this.#owned.push(thing);
    return thing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await Promise.all(this.#owned.map((thing) => thing[Symbol.asyncDispose]()));
    await this.#server?.[Symbol.asyncDispose]();
    this.#remove();
  }

  /**
   * For the end of the process, when nothing can be awaited. Servers end with this process anyway.
   */
  abandon(): void {
    for (const worker of this.#workers) worker.kill();
    this.#remove();
  }

  #remove(): void {
    open.delete(this);
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Called on Ctrl-C, which must leave neither processes nor files. */
export function abandonAll(): void {
  for (const stage of [...open]) stage.abandon();
}
