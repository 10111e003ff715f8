import type { Recipe } from "./shop.js";

/** What the director asks of a worker. */
export type Order =
  | {
      readonly do: "count";
      readonly rounds: number;
      readonly holdMs: number;
      readonly file: string;
    }
  /** Waits in the queue, and keeps the lock until told to release. */
  | { readonly do: "take"; readonly ttlMs: number }
  /** The same, and reads what is in stock. Sells when told, or once the file `until` is there. */
  | {
      readonly do: "enter";
      readonly ttlMs: number;
      readonly shop: string;
      readonly recipe: Recipe;
      readonly until?: string;
    }
  | { readonly do: "sell" }
  | { readonly do: "give-back" };

/** What a worker tells. Tokens travel as text, instants are those of the host's monotonic clock. */
export type Report =
  | { readonly say: "ready" }
  | { readonly say: "asking" }
  | {
      readonly say: "granted";
      readonly token: string;
      readonly at: number;
      readonly sequencer: string;
    }
  | { readonly say: "counted"; readonly from: number; readonly to: number }
  | { readonly say: "read"; readonly units: number }
  | { readonly say: "sold"; readonly outcome: string }
  | { readonly say: "released"; readonly outcome: string; readonly at: number }
  | {
      readonly say: "awake";
      readonly held: boolean;
      readonly stoppedMs: number;
      readonly threw: string;
    }
  | { readonly say: "still"; readonly held: boolean };

/** One clock for all processes of the host, so that their reports can be put in order. */
export function instant(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1e3 + nanos / 1e6;
}
