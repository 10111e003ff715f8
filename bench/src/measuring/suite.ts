import type { Stage } from "./stage.js";
import type { ContendOrder, ContendReport } from "./worker/contend.js";

/** Whether something works inside one process only, or between all processes of the host. */
export type Reach = "process" | "host";

export interface Release {
  (): Promise<unknown>;
  /** Where another program holds: the instants that it took itself. It has left once it is released. */
  readonly instants?: { readonly enteredAt: number; leftAt: number };
}

/** One lock library, opened by one worker process. */
export interface Subject {
  /** For the one resource that everybody wants, unless another is named. May reject with GaveUp. */
  acquire(resource?: string): Promise<Release>;
  /** The same, and renewed until released. Left out where `acquire` renews, or nothing can. */
  keep?(resource: string): Promise<Release>;
  /** Where another program does the looping. */
  contend?(order: ContendOrder): Promise<ContendReport>;
  /** How often the lock asked its backend so far, where that can be counted. */
  readonly calls?: () => number;
}

export interface OpenContext {
  /** An empty folder, the same for all workers of one measurement. */
  readonly folder: string;
  /** The server of this measurement; empty where the suite has none. */
  readonly url: string;
  /** Count the calls, which costs a little; otherwise `calls` may be left out. */
  readonly counting: boolean;
  /** How long a grant lives. */
  readonly ttlMs: number;
  /** How long a resource that nobody uses may leave traces, where that can be chosen. */
  readonly idleMs: number;
  /** Many calls at once are to come: peers may use what their client has for that. */
  readonly pipelining: boolean;
}

/** What a contender does on the suite's server, so that the server can be asked about it. */
export interface Traces {
  /** The commands it sends, in lower case. Those that its scripts run are not sent. */
  readonly sends: readonly string[];
  /** What it sends to renew besides. At other times only its scripts run these. */
  readonly renews?: readonly string[];
  /** Those of them that keep leases alive, where they have a name of their own. */
  readonly keepsAlive?: readonly string[];
  /** The key that exists as long as a resource is held, or the folder of those who want it. */
  key(resource: string): string;
}

/** A server, started anew for every measurement. */
export interface TestServer extends AsyncDisposable {
  readonly url: string;
  roundTrip(): Promise<unknown>;
  /** How many of these commands were sent so far; of all, where a client's are counted apart. */
  calls(commands: readonly string[]): Promise<number>;
  /** Left out where no scenario of the suite looks into it. */
  readonly content?: Content;
  /** Of a database: makes so many rows of grants that others hold. */
  plant?(count: number): Promise<unknown>;
}

/** What a server has in it. */
export interface Content {
  /** How many of these resources are held. */
  held(traces: Traces, resources: readonly string[]): Promise<number>;
  /** How many stand there for a resource, to hold it or to wait; where the server can be asked. */
  inQueue?(traces: Traces, resource: string): Promise<number>;
  keys(): Promise<number>;
  bytes(): Promise<number>;
}

export interface Contender {
  readonly id: string;
  readonly name: string;
  /** Ours is drawn in colour. */
  readonly ours: boolean;
  readonly reach: Reach;
  /** Scenarios, by id, in which it has nothing to show, and why. */
  readonly sitsOut?: Readonly<Record<string, string>>;
  readonly traces?: Traces;
  open(context: OpenContext): Promise<Subject>;
}

export type Kind = "rate" | "ms" | "part" | "times" | "percent" | "count" | "bytes" | "each";
export type Better = "more" | "less";

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly kind: Kind;
  /** Where it differs from the scenario's. */
  readonly better?: Better;
}

export type Measures = Readonly<Record<string, number>>;

interface Question {
  readonly id: string;
  readonly title: string;
  /** One sentence on what is measured, printed above the table. */
  readonly about: string;
  readonly reach: Reach;
  /** The first column is the headline: it is compared with the reference and drawn. Columns that
   * nobody has a value for are left out. */
  readonly columns: readonly [Column, ...Column[]];
  readonly better: Better;
  /** At most so many rounds, where one takes long. */
  readonly rounds?: number;
  /** A row of what the machine allows without any lock, out of what every contender measured of it. */
  readonly raw?: { readonly name: string; of(measures: Measures): Measures };
}

/** Each contender by itself, in one stretch a round. */
export interface WholeScenario extends Question {
  measure(stage: Stage): Promise<Measures>;
}

/** All contenders at once, each for a moment in turn. */
export interface SlicedScenario extends Question {
  readonly slicesARound: number;
  open(stage: Stage): Promise<Runner>;
}

export type Scenario = WholeScenario | SlicedScenario;

/** One contender, ready to be measured slice by slice. In between it does nothing. */
export interface Runner<Slice = unknown> {
  warmUp(): Promise<unknown>;
  slice(): Promise<Slice>;
  summary(slices: readonly Slice[]): Measures;
}

/**
 * A promise about numbers of the same run. With `against`, how many times as good as the best of
 * them; without, the number itself.
 */
export type Requirement = {
  readonly title: string;
  readonly scenario: string;
  readonly of: string;
  /** The headline, unless another is named. */
  readonly column?: string;
} & (
  | { readonly against: readonly string[]; readonly atLeast: number }
  | { readonly atLeast: number }
  | { readonly atMost: number }
);

export interface Suite {
  readonly name: string;
  /** The address of the module that exports this suite as `suite`: worker processes load it. */
  readonly module: string;
  readonly contenders: readonly Contender[];
  readonly scenarios: readonly Scenario[];
  /** The contender, by id, that the others are compared with; and in which scenarios, another. */
  readonly reference: string;
  readonly references?: Readonly<Record<string, string>>;
  /** How often the contenders take turns in being measured, unless the caller says; once if absent. */
  readonly rounds?: number;
  /** How long contenders run before it counts; a quarter of the measured time if absent. */
  readonly warmUpMs?: number;
  /** Left out by a suite that needs no server. */
  startTestServer?(): Promise<TestServer>;
  readonly requirements: readonly Requirement[];
}
