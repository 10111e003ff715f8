import type { Mode } from "../../engine.js";

/** The log of one process, one line of JSON per entry, in the time of the host's clock. */
export type LogEntry =
  /** A lease was held at some instant between from and to, and believed until at least `until`. */
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
  /** The holder is about to ask for a shorter ttl: its earlier belief is no longer measured. */
  | { readonly e: "shrinks"; readonly lease: string }
  /** The holder releases the lease before its end, so no lock-delay follows. */
  | { readonly e: "gives-back"; readonly lease: string }
  /** Nobody else may hold until then, even if the holder dies. */
  | { readonly e: "keeps"; readonly lease: string; readonly until: number }
  /** Somebody is about to revoke it by force: its holder's belief no longer counts. */
  | { readonly e: "forced"; readonly resource: string; readonly token: string }
  /** This process was killed, on a backend that ends the grants of dead processes early. */
  | { readonly e: "killed"; readonly pid: number }
  /** An acquire ended without a lease. */
  | { readonly e: "ended"; readonly code: string; readonly at: number };

/** The backend's record of a resource at some instant between from and to. */
export interface Reading {
  readonly resource: string;
  readonly from: number;
  readonly to: number;
  readonly grants: readonly { readonly token: bigint; readonly remainingMs: number }[];
}

/** The kind of a resource, which tells the checker what may happen on it. */
export interface Contended {
  readonly name: string;
  /** The most holders at once in shared mode; 0 for an exclusive resource. */
  readonly limit: number;
  readonly lockDelayMs: number;
  /** Default: one at a time. group: many at once, for several ttls. once: by locks.once. */
  readonly kind?: "group" | "once";
}

export const COUNTED = "count";
/** More names than one process takes, so that the processes meet. */
const GROUPED = 50;

/** The contended resources, as far as the engine has these modes. */
export function contended(can: {
  readonly shared: boolean;
  readonly limits: boolean;
  readonly lockDelay: boolean;
}): readonly Contended[] {
  return [
    { name: COUNTED, limit: 0, lockDelayMs: 0 },
    // Several of each kind: while one waits for a stopped holder, the others continue.
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

/** The job of a process; sent as JSON. */
export interface WorkerJob {
  readonly url: string;
  readonly log: string;
  readonly seed: number;
  readonly ttlMs: number;
  readonly loops: number;
  readonly resources: readonly (Omit<Contended, "limit"> & { readonly limit: number | null })[];
}
