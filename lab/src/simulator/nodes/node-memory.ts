/** A grant as a node stores it, like the scripts store it in Redis. */
export interface GrantRecord {
  readonly id: string;
  readonly mode: "x" | "s";
  readonly attempt: number;
  readonly fence: number;
  readonly tokens: number;
  readonly delay: number;
  /** The number of the last call that set `ends`. A call with a smaller number comes too late. */
  order: number;
  /** The index of the token in use. */
  index: number;
  revoked: boolean;
  /** The holder left the grant behind: only time ends it. */
  left: boolean;
  ends: number;
  readonly born: number;
  readonly label: string;
}

export interface StoredWaiter {
  readonly ticket: number;
  readonly mode: "x" | "s";
  readonly arrivalMs: number;
  readonly ends: number;
}

export class ResourceState {
  records: GrantRecord[] = [];
  fence = 0;
  /** Until when the counter is kept. */
  fenceEnds = 0;
  /** What this node has accepted, for the checker; the rules do not read it. */
  accepted: number[] = [];
  gone = new Map<string, { upTo: number; order: number; ends: number }>();
  /** The waiters, by id. */
  queue = new Map<string, StoredWaiter>();
  called: { id: string; at: number } | null = null;

  copy(): ResourceState {
    const copy = new ResourceState();
    copy.records = this.records.map((record) => ({ ...record }));
    copy.fence = this.fence;
    copy.fenceEnds = this.fenceEnds;
    copy.accepted = [...this.accepted];
    copy.gone = new Map(this.gone);
    copy.queue = new Map(this.queue);
    copy.called = this.called;
    return copy;
  }
}

/** All that a node stores. */
export class NodeMemory {
  states = new Map<string, ResourceState>();
  certificate: string | null = null;
  nonce: string | null = null;

  stateOf(resource: string): ResourceState {
    let state = this.states.get(resource);
    if (state === undefined) {
      state = new ResourceState();
      this.states.set(resource, state);
    }
    return state;
  }

  copy(): NodeMemory {
    const copy = new NodeMemory();
    for (const [name, state] of this.states) copy.states.set(name, state.copy());
    copy.certificate = this.certificate;
    copy.nonce = this.nonce;
    return copy;
  }
}
