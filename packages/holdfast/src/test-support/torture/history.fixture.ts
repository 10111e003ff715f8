import type { Mode } from "../../engine.js";

/** What a process of the torture wrote down, one line of JSON each, in the time of the host's clock. */
export type Entry =
  /** A lease was held at some instant between from and to, and was believed until at least `until`. */
  | {
      readonly e: "held";
      readonly lease: string;
      readonly resource: string;
      readonly mode: Mode;
      readonly token: string;
      readonly from: number;
      readonly to: number;
      readonly until: number;
    }
  /** Its holder is about to ask for a shorter life: what it believed until now is no measure any more. */
  | { readonly e: "shrinks"; readonly lease: string }
  /** Its holder gives it back before its end, so no lock-delay follows. */
  | { readonly e: "gives-back"; readonly lease: string }
  /** Whatever becomes of its holder, nobody else may hold until then. */
  | { readonly e: "keeps"; readonly lease: string; readonly until: number }
  /** Somebody is about to end it by force: what its holder believes is nobody's promise any more. */
  | { readonly e: "forced"; readonly resource: string; readonly token: string }
  /** This process was killed, on a backend that ends the grants of the dead before their time. */
  | { readonly e: "killed"; readonly pid: number }
  /** An acquire ended without a lease. */
  | { readonly e: "ended"; readonly code: string; readonly at: number };

/** What the backend had of a resource at some instant between from and to. */
export interface Reading {
  readonly resource: string;
  readonly from: number;
  readonly to: number;
  readonly grants: readonly { readonly token: bigint; readonly remainingMs: number }[];
}

/** What a resource of the torture is, which tells the checker what may happen on it. */
export interface Contended {
  readonly name: string;
  /** How many may hold it at once in shared mode; 0 for an exclusive one. */
  readonly limit: number;
  readonly lockDelayMs: number;
  /** Left out: one at a time. group: many at once, for several ttls. once: by locks.once. */
  readonly kind?: "group" | "once";
}

export const COUNTED = "count";
/** More than one process takes, so that they meet. */
const GROUPED = 50;

/** What is contended for, as far as the engine has these modes. */
export function contended(can: {
  readonly shared: boolean;
  readonly limits: boolean;
  readonly lockDelay: boolean;
}): readonly Contended[] {
  return [
    { name: COUNTED, limit: 0, lockDelayMs: 0 },
    // Several of each kind: while one waits for a holder that was stopped, the others go on.
    ...["plain", "simple", "bare"].map((name) => ({ name, limit: 0, lockDelayMs: 0 })),
    ...(can.lockDelay ? [{ name: "delayed", limit: 0, lockDelayMs: 200 }] : []),
    ...(can.shared ? [{ name: "catalogue", limit: Infinity, lockDelayMs: 0 }] : []),
    ...(can.shared ? [{ name: "index", limit: Infinity, lockDelayMs: 0 }] : []),
    ...(can.limits ? [{ name: "permits", limit: 3, lockDelayMs: 0 }] : []),
    { name: "nightly", limit: 0, lockDelayMs: 0, kind: "once" },
    ...Array.from({ length: GROUPED }, (_, i) => ({
      ...{ name: `group ${i}`, limit: 0, lockDelayMs: 0, kind: "group" as const },
    })),
  ];
}

/** What a process is told when it starts; it travels as JSON. */
export interface WorkerJob {
  readonly url: string;
  readonly log: string;
  readonly seed: number;
  readonly ttlMs: number;
  readonly loops: number;
  readonly resources: readonly (Omit<Contended, "limit"> & { readonly limit: number | null })[];
}
