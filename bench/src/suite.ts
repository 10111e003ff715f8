import type { Stage } from "./stage.js";

/** Whether something works inside one process only, or between all processes of the host. */
export type Reach = "process" | "host";

export type Release = () => Promise<unknown>;

/** One lock, opened by one worker process. Every `acquire` is for the same resource. */
export interface Subject {
  acquire(): Promise<Release>;
  /** How often the lock asked its backend so far, where that can be counted. */
  readonly calls?: () => number;
}

export interface Place {
  /** An empty folder, the same for all workers of one measurement. */
  readonly folder: string;
  /** Count the calls, which costs a little; otherwise `calls` may be left out. */
  readonly counting: boolean;
}

export interface Contender {
  readonly id: string;
  readonly name: string;
  /** Ours is drawn in colour. */
  readonly ours: boolean;
  readonly reach: Reach;
  /** Scenarios, by id, in which it has nothing to show, and why. */
  readonly sitsOut?: Readonly<Record<string, string>>;
  open(place: Place): Promise<Subject>;
}

export type Kind = "rate" | "ms" | "part" | "times" | "percent" | "count";

export interface Column {
  readonly key: string;
  readonly title: string;
  readonly kind: Kind;
}

export type Measures = Readonly<Record<string, number>>;

export interface Scenario {
  readonly id: string;
  readonly title: string;
  /** One sentence on what is measured, printed above the table. */
  readonly about: string;
  readonly reach: Reach;
  /** The first column is the headline: it is compared with the reference and drawn. */
  readonly columns: readonly [Column, ...Column[]];
  readonly better: "more" | "less";
  /** What the machine allows without any lock, measured in the same run. */
  readonly raw?: { readonly name: string; measure(stage: Stage): Promise<Measures> };
  measure(stage: Stage, raw: Measures | null): Promise<Measures>;
}

/** A promise about numbers of the same run: `of` is `atLeast` times as good as the best `against`. */
export interface Requirement {
  readonly title: string;
  readonly scenario: string;
  readonly of: string;
  readonly against: readonly string[];
  readonly atLeast: number;
}

export interface Suite {
  readonly name: string;
  /** The address of the module that exports this suite as `suite`: worker processes load it. */
  readonly module: string;
  readonly contenders: readonly Contender[];
  readonly scenarios: readonly Scenario[];
  /** The contender, by id, that the others are compared with. */
  readonly reference: string;
  readonly requirements: readonly Requirement[];
}
