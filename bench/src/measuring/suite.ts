import type { Measurement } from "./measurement.js";
import type { ContendOrder, ContendReport } from "./worker/contend.js";

/** Whether a lock works inside one process only, or between all processes of the host. */
export type Reach = "process" | "host";

export interface ReleaseLock {
  (): Promise<unknown>;
  /**
   * Where another program holds the lock: the instants that it measured. leftAt is set by the
   * release.
   */
  readonly instants?: { readonly enteredAt: number; leftAt: number };
}

/** One lock library, opened by one worker process. */
export interface Subject {
  /**
   * Acquires the resource that all waiters want, unless another is named. May reject with GaveUp.
   */
  acquire(resource?: string): Promise<ReleaseLock>;
  /**
   * Like acquire, and renews until released. Absent where `acquire` renews, or the lock cannot
   * renew.
   */
  keep?(resource: string): Promise<ReleaseLock>;
  /** Present where another program runs the loops. */
  contend?(order: ContendOrder): Promise<ContendReport>;
  /** How often the lock called its backend so far, where that can be counted. */
  readonly calls?: () => number;
}

export interface OpenContext {
  /** An empty folder, the same for all workers of one measurement. */
  readonly folder: string;
  /** The server's URL; empty where the suite has no server. */
  readonly url: string;
  /** Whether to count calls, which costs a little. Otherwise `calls` may be absent. */
  readonly counting: boolean;
  /** How long a grant lives. */
  readonly ttlMs: number;
  /** How long an unused resource may leave data behind, where that can be chosen. */
  readonly idleMs: number;
  /** Many calls will be made at once. Peers may use the pipelining of their client. */
  readonly pipelining: boolean;
}

/**
 * What a contender sends to the server and stores there, so that the bench can ask the server about
 * it.
 */
export interface Traces {
  /** The commands that it sends, in lower case. Commands inside its scripts do not count. */
  readonly sends: readonly string[];
  /** Further commands that it sends to renew. At other times only its scripts run these. */
  readonly renews?: readonly string[];
  /** The commands that keep leases alive, where they have a name of their own. */
  readonly keepsAlive?: readonly string[];
  /**
   * The key that exists while a resource is held, or the parent of its holder's and waiters' keys.
   */
  key(resource: string): string;
}

/** A server, started anew for every measurement. */
export interface BenchServer extends AsyncDisposable {
  readonly url: string;
  roundTrip(): Promise<unknown>;
  /**
   * How many of these commands were sent so far. A server that does not count by command returns
   * all.
   */
  calls(commands: readonly string[]): Promise<number>;
  /** Absent where no scenario of the suite looks into the server. */
  readonly content?: Content;
  /** For databases: inserts this many rows of grants that others hold. */
  plant?(count: number): Promise<unknown>;
}

/** What the server stores. */
export interface Content {
  /** How many of these resources are held. */
  held(traces: Traces, resources: readonly string[]): Promise<number>;
  /** How many hold a resource or wait for it, where the server can tell. */
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
  /** By id, the scenarios that do not apply to it, and why. */
  readonly sitsOut?: Readonly<Record<string, string>>;
  readonly traces?: Traces;
  open(context: OpenContext): Promise<Subject>;
}

export type ColumnKind = "rate" | "ms" | "part" | "times" | "percent" | "count" | "bytes" | "each";
export type Better = "more" | "less";

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly kind: ColumnKind;
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
  /** A row of what the machine allows without a lock, from what every contender measured. */
  readonly raw?: { readonly name: string; of(measures: Measures): Measures };
}

/** Measures one contender after the other, each in one piece a round. */
export interface WholeScenario extends Question {
  measure(stage: Measurement): Promise<Measures>;
}

/** Opens all contenders and measures them in short slices, in turn. */
export interface SlicedScenario extends Question {
  readonly slicesARound: number;
  open(stage: Measurement): Promise<Runner>;
}

export type Scenario = WholeScenario | SlicedScenario;

/** One contender, ready to be measured in slices. Between slices it does nothing. */
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
  /**
   * How often the contenders take turns in being measured, unless the caller says; once if absent.
   */
  readonly rounds?: number;
  /** How long contenders run before it counts; a quarter of the measured time if absent. */
  readonly warmUpMs?: number;
  /** Left out by a suite that needs no server. */
  startTestServer?(): Promise<BenchServer>;
  readonly requirements: readonly Requirement[];
}
