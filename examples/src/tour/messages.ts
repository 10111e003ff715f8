/** What the director asks of a worker. */
export type Order =
  | {
      readonly do: "count";
      readonly rounds: number;
      readonly holdMs: number;
      readonly file: string;
    }
  | { readonly do: "hold"; readonly ttlMs: number }
  | { readonly do: "freeze"; readonly ttlMs: number }
  /** Stands in line, writes to the register once granted, and keeps the lock until told. */
  | { readonly do: "take"; readonly ttlMs: number }
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
  | { readonly say: "write"; readonly token: string; readonly value: string }
  | { readonly say: "written"; readonly outcome: string }
  | { readonly say: "released"; readonly outcome: string; readonly at: number }
  | {
      readonly say: "awake";
      readonly held: boolean;
      readonly stoppedMs: number;
      readonly threw: string;
    }
  | { readonly say: "still"; readonly held: boolean };

export type Answer = { readonly answer: string };

/** One clock for all processes of the host, so that their reports can be put in order. */
export function instant(): number {
  const [seconds, nanos] = process.hrtime();
  return seconds * 1e3 + nanos / 1e6;
}
