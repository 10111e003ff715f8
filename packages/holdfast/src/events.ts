import { type Channel, channel } from "node:diagnostics_channel";
import { writesAsJson } from "./core/runtime/json.js";
import type { Mode } from "./engine.js";
import type { LossReason } from "./errors.js";

interface Subject {
  readonly resource: string;
  readonly mode: Mode;
  readonly label: string;
}

interface LeaseSubject extends Subject {
  readonly token: bigint;
}

/** The payload of each channel `holdfast:<name>`. It never contains a grantId or a credential. */
export interface Events {
  wait: Subject;
  acquired: LeaseSubject & { readonly waitedMs: number };
  renewed: LeaseSubject & { readonly tookMs: number; readonly remainingMs: number };
  "renewal-failed": LeaseSubject & { readonly error: Error; readonly remainingMs: number };
  "in-danger": LeaseSubject & { readonly remainingMs: number };
  lost: LeaseSubject & { readonly reason: LossReason; readonly heldMs: number };
  released: LeaseSubject & { readonly heldMs: number; readonly outcome: "released" | "gone" };
  /** A wait that ended without a lease. Every other wait ends with acquired. */
  "not-granted": Subject & {
    readonly waitedMs: number;
    /** busy: waitMs is over. failed: the backend failed. */
    readonly outcome: "busy" | "aborted" | "closed" | "failed";
    /** The error that the caller got; after an abort, the signal's reason. */
    readonly error: unknown;
  };
  "handed-over": LeaseSubject & { readonly from: bigint; readonly waitedMs: number };
  /** A node of a quorum no longer counts, or counts again. */
  node: {
    readonly node: string;
    /**
     * suspect: its clock jumped. quarantined: it may have forgotten what it acknowledged. foreign:
     * it was certified by clients with different settings.
     */
    readonly state: "quarantined" | "certified" | "suspect" | "foreign";
    /** The node does not count for at least this long. */
    readonly forMs: number;
    /** The clock of a suspect moved by at least this much. */
    readonly movedMs?: number;
  };
  /** Something failed where no caller could get an error: clean-up, dispose, heartbeats. */
  failed: { readonly during: string; readonly error: unknown; readonly resource?: string };
}

export type EventName = keyof Events;

const NAMES: readonly EventName[] = [
  "wait",
  "acquired",
  "renewed",
  "renewal-failed",
  "in-danger",
  "lost",
  "released",
  "not-granted",
  "handed-over",
  "node",
  "failed",
];

/** The diagnostics_channel of each event, by name. */
export const channels = Object.fromEntries(
  NAMES.map((name) => [name, channel(`holdfast:${name}`)]),
) as { readonly [N in EventName]: Channel };

/** The payload is built only when somebody listens. */
export function emit<N extends EventName>(name: N, payload: () => Events[N]): void {
  const target = channels[name];
  if (target.hasSubscribers) target.publish(writesAsJson(payload()));
}
