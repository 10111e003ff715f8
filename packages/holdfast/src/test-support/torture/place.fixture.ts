import type { TrueGrant } from "../../conformance/index.js";
import type { Random } from "../seeded-random.fixture.js";
import type { contended } from "./history.fixture.js";

/** How many processes contend. */
export const PROCESSES = 4;

/** One fault of a backend. inflict() resolves when it is over. */
export interface BackendFault {
  readonly name: string;
  inflict(random: Random): Promise<void>;
}

/** The backend of a torture test, and how to reach and disturb it. */
export interface Place extends AsyncDisposable {
  readonly ttlMs: number;
  readonly can: Parameters<typeof contended>[0];
  /** The URL by which process number `index` reaches the backend. */
  url(index: number): string;
  /** A URL that is never disturbed. */
  readonly directUrl: string;
  /** In addition to the faults of every process, which is killed, or stopped past its ttl. */
  readonly faults: readonly BackendFault[];
  /** The backend's own record, not what the engine says of it; fails while the backend is down. */
  truth(resource: string): Promise<readonly TrueGrant[]> | readonly TrueGrant[];
  /** Whether the grants of a dead process end early. */
  readonly noticesDeath?: boolean;
}

/** Disposes in reverse order. */
export async function disposeAll(all: readonly AsyncDisposable[]): Promise<void> {
  for (const one of [...all].reverse()) await one[Symbol.asyncDispose]();
}
