import { cpuMs, instant } from "../instant.js";
import type { OpenContext, ReleaseLock, Subject, Suite } from "../suite.js";
import { type ContendOrder, type ContendReport, contend } from "./contend.js";
import { type Crowd, type CrowdReport, drain, gather } from "./crowd.js";
import { Holdings } from "./holdings.js";

/** The requests to a worker process. Each takes one value and returns one. */
export interface Verbs {
  open(order: { suite: string; contender: string; context: OpenContext }): Promise<void>;
  /** Loops of acquire and release from one instant to another. */
  contend(order: ContendOrder): Promise<ContendReport>;
  /** Acquires and holds. Returns the instant of the grant. */
  acquire(): Promise<number>;
  /** Releases what `acquire` holds. Returns the instant at which the section was left. */
  release(): Promise<number>;
  /** Holds this many more resources. Returns how many it holds then. */
  hold(count: number): Promise<number>;
  /** Releases this many of them. Returns the instant before the first release. */
  letGo(count: number): Promise<number>;
  /** Starts many waiters at once. They stay in the queue until `drain` serves them. */
  gather(order: { waiters: number; apart: boolean }): Promise<void>;
  drain(order: { forMs: number }): Promise<CrowdReport>;
  usage(): Promise<Usage>;
}

export interface Usage {
  readonly at: number;
  readonly cpuMs: number;
  readonly calls: number | null;
}

export interface WorkerRequest {
  readonly id: number;
  readonly verb: keyof Verbs;
  readonly order: unknown;
}

export interface WorkerReply {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

let subject: Subject | null = null;
let held: ReleaseLock | null = null;
let holdings: Holdings | null = null;
let crowd: Crowd | null = null;

const verbs: Verbs = {
  async open({ suite: module, contender, context }) {
    const { suite } = (await import(module)) as { suite: Suite };
    const found = suite.contenders.find(({ id }) => id === contender);
    if (found === undefined) throw new Error(`${suite.name} has no contender "${contender}"`);
    subject = await found.open(context);
    holdings = new Holdings(subject);
  },
  contend: (order) => opened().contend?.(order) ?? contend(opened(), order),
  async acquire() {
    held = await opened().acquire();
    return held.instants?.enteredAt ?? instant();
  },
  async release() {
    const release = held;
    if (release === null) throw new Error("release without acquire");
    held = null;
    const leftAt = instant();
    await release();
    return release.instants?.leftAt ?? leftAt;
  },
  hold: (count) => holdings!.add(count),
  letGo: (count) => holdings!.release(count),
  async gather({ waiters, apart }) {
    crowd = gather(opened(), waiters, apart);
  },
  async drain({ forMs }) {
    if (crowd === null) throw new Error("drain without gather");
    return drain(crowd, forMs);
  },
  async usage() {
    return { at: instant(), cpuMs: cpuMs(), calls: subject?.calls?.() ?? null };
  },
};

// The process that started this one has ended, so there is nothing left to do.
process.on("disconnect", () => process.exit(1));
process.on("message", (request: WorkerRequest) => void answer(request));

async function answer({ id, verb, order }: WorkerRequest): Promise<void> {
  const reply = await (verbs[verb] as (order: unknown) => Promise<unknown>)(order).then(
    (value): WorkerReply => ({ id, value }),
    (error: unknown): WorkerReply => ({
      id,
      error: error instanceof Error ? error.message : `${error}`,
    }),
  );
  process.send?.(reply);
}

function opened(): Subject {
  if (subject === null) throw new Error("the worker has opened nothing yet");
  return subject;
}
