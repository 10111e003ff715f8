/**
 * The contract between the core and an engine. Types only: this file imports nothing.
 *
 * An engine answers questions about one backend; it decides no policy. Busy and gone are answers.
 * Everything else that keeps an engine from answering is an `EngineError`, which says whether the
 * request had no effect or an unknown one. A failure is never reported as busy or gone.
 */

export type Mode = "exclusive" | "shared";

/** A request for one grant. Core mints the grantId and checks every field before an engine sees it. */
export interface Claim {
  readonly resource: string;
  /** 128 random bits in hex. Identifies this one grant for ever; never shown to people. */
  readonly grantId: string;
  readonly mode: Mode;
  /** How many shared grants may live at once; null means no limit. Always null for exclusive. */
  readonly limit: number | null;
  readonly ttlMs: number;
  /** How long the resource stays closed after this grant expires; a release opens it at once. */
  readonly lockDelayMs: number;
  /** How many consecutive tokens to reserve, 1 … `traits.tokenRange`. */
  readonly tokens: number;
  readonly label: string;
}

/** Sent with every call. Core enforces the deadline; an engine may use it to stop early. */
export interface Call {
  /**
   * The instant on core's clock before anything was sent. An honest `since` is never later. Core's
   * clock need not be the engine's: an engine that pushes grants learns the difference from this
   * value.
   */
  readonly startedAt: number;
  readonly timeoutMs: number;
  /**
   * A whole number that rises with every call of this core. Renewals of one grant take effect in
   * this order, no matter in which order they arrive: a late copy must not undo a later renewal.
   */
  readonly order: number;
}

export interface GrantRef {
  readonly resource: string;
  readonly grantId: string;
}

export interface RenewRef extends GrantRef {
  readonly ttlMs: number;
  /**
   * The index of the grant's token in use; 0, the default, is the first. It rises when the lease is
   * handed over inside the process. Views show that token, and only that token can be revoked.
   */
  readonly index?: number;
  /**
   * The holder leaves, and keeps others out for ttlMs from now on: the grant outlives the process,
   * its connection and `close()`, and only time or a forced revocation ends it.
   */
  readonly leave?: boolean;
}

export interface ReleaseRef extends GrantRef {
  /**
   * More than 0 when core never saw the acquire's answer: for this long, an acquire or enqueue with
   * this grantId that arrives late must be answered with gone. 0 asks for no tombstone.
   */
  readonly tombstoneMs: number;
}

/** From when, and for how long, a grant is valid. */
export interface Validity {
  /**
   * An instant of core's clock, no later than the event that set the backend's expiry: the
   * `startedAt` of the call that did it, or of the last acknowledged keepalive. Never the receipt.
   */
  readonly since: number;
  readonly ttlMs: number;
}

export interface Granted extends Validity {
  readonly kind: "granted";
  /** The first of the reserved tokens. Greater than every token of every earlier grant. */
  readonly token: bigint;
  /** How many tokens were reserved: 1 up to what the claim asked for. */
  readonly tokens: number;
}

export interface Busy {
  readonly kind: "busy";
  /** For people: the current holders, as far as the engine knows them without another request. */
  readonly holders: readonly HolderView[];
  /** When a new try first makes sense, if the engine knows. Core never waits longer for it. */
  readonly retryAfterMs?: number;
  /** The backend remembers that this claim waits. Core releases the claim when it stops waiting. */
  readonly remembered?: boolean;
}

export interface Renewed extends Validity {
  readonly kind: "renewed";
}

export interface Released {
  readonly kind: "released";
}

export interface Gone {
  readonly kind: "gone";
  readonly why: "expired" | "replaced" | "revoked" | "unknown";
}

/** One entry of a batch that could not be answered. The others in the batch still are. */
export interface Failed {
  readonly kind: "failed";
  readonly effect: "none" | "unknown";
  readonly error: Error;
}

export interface Queued {
  readonly kind: "queued";
  /** Waiters before this one; 0 is the head. */
  readonly position: number;
  /** The next heartbeat is due this long after the call started. A late one may cost the place. */
  readonly nextHeartbeatMs: number;
  readonly holders: readonly HolderView[];
}

/**
 * The backend does not know this waiter, or no longer does. Core joins the queue again, with a new
 * grantId.
 */
export interface Unknown {
  readonly kind: "unknown";
}

export interface Withdrawn {
  readonly kind: "withdrawn";
}

export interface HolderView {
  readonly mode: Mode;
  /**
   * The token in use, as of the last renewal: a hand-over inside a process shows after the next
   * one.
   */
  readonly token: bigint;
  readonly label: string;
  /** Until expiry, by the backend's clock. Rounded up to its steps, and never more than the ttl. */
  readonly remainingMs: number;
  readonly revoked: boolean;
}

export interface WaiterView {
  readonly mode: Mode;
  readonly label: string;
  readonly position: number;
}

export interface ResourceView {
  readonly resource: string;
  readonly holders: readonly HolderView[];
  readonly waiters: readonly WaiterView[];
  /** More than 0 while a lost grant's lock-delay keeps the resource closed. */
  readonly closedMs: number;
}

export interface ListFilter {
  /** A glob: `*` matches any run of characters, `?` matches one. */
  readonly match: string;
  /** From the previous page; null for the first. */
  readonly cursor: string | null;
  readonly max: number;
}

export interface ListPage {
  readonly views: readonly ResourceView[];
  readonly cursor: string | null;
}

/** A parsed sequencer: what a holder shows to prove which grant it acts under. */
export interface Sequence {
  readonly resource: string;
  readonly mode: Mode;
  readonly token: bigint;
}

export interface EngineTraits {
  /** ttl: each grant has its own expiry. session: grants live as long as the engine's session. */
  readonly expiry: "ttl" | "session";
  readonly ttl: { readonly minMs: number; readonly maxMs: number; readonly stepMs: number };
  readonly modes: readonly Mode[];
  /** Whether shared claims may carry a limit. */
  readonly limits: boolean;
  readonly lockDelay: boolean;
  /**
   * process: tokens rise while the process that keeps them lives, which for a server is the
   * server's. durable: across its restarts, kills and power cuts.
   * clock: also across a loss of data, unless the backend's clock was set back in between.
   */
  readonly fencing: "process" | "durable" | "clock";
  /** The most tokens that one grant can reserve; 1 means no cohort hand-over. */
  readonly tokenRange: number;
  /** Whether a grant can be left: it then outlives the process that held it, until its time ends. */
  readonly leaves: boolean;
  /**
   * Every answer comes from outside the process, through the event loop. Without this trait the
   * core makes the loop turn between calls.
   */
  readonly remote?: true;
}

/** The backend keeps waiters in order and makes the head of the queue the next holder by itself. */
export interface QueueFacet {
  /**
   * Grants at once if nobody is before this claim, else enqueues it. One round trip either way. A
   * repeat with the same grantId is also a heartbeat: it keeps the place, and is granted if its
   * turn has come.
   */
  enqueue(claim: Claim, call: Call): Promise<Granted | Queued | Gone>;
  /** One answer per waiter, in the order given. Heartbeats decide; pushes only make it fast. */
  heartbeat(
    waiters: readonly GrantRef[],
    call: Call,
  ): Promise<readonly (Queued | Granted | Unknown | Failed)[]>;
  /** Leaves the queue, unless the grant came first. */
  withdraw(waiter: GrantRef, call: Call): Promise<Withdrawn | Granted>;
  /** Calls back for grants that arrive without a heartbeat. Returns a function that stops it. */
  onGrant(listener: (waiter: GrantRef, granted: Granted) => void): () => void;
}

/** The backend can report changes: a holder was revoked, a resource became free. */
export interface WatchFacet {
  /** Core renews holders of the resource at once; waiters without a queue try again. */
  onChange(listener: (resource: string) => void): () => void;
}

export interface Engine {
  readonly name: string;
  readonly traits: EngineTraits;
  /**
   * Never overtakes a waiter. A repeat with the same grantId gets the same token and a fresh ttl.
   */
  tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone>;
  /**
   * Never revives: an expired, replaced or revoked grant is gone. A renewal that arrives after a
   * later one (`call.order`) changes nothing and is answered with what remains. A renewal with a
   * greater index than the revoked one's succeeds: the revocation was for a holder that has handed
   * the lease over. One answer per grant, in order.
   */
  renew(grants: readonly RenewRef[], call: Call): Promise<readonly (Renewed | Gone | Failed)[]>;
  /** Ends the grant, or the waiter, of exactly this grantId. One answer per grant, in order. */
  release(
    grants: readonly ReleaseRef[],
    call: Call,
  ): Promise<readonly (Released | Gone | Failed)[]>;
  /** Whether a live, unrevoked grant of this mode holds this token now. Decided by the backend. */
  check(sequence: Sequence, call: Call): Promise<boolean>;
  /**
   * Forbids renewal; the successor follows at release or expiry. With force the grant ends at once,
   * which breaks exclusion for a holder that is still at work. Only the token in use counts: any
   * other token of the range is gone.
   */
  revoke(sequence: RevokeRef, call: Call): Promise<"revoked" | "gone">;
  /** For people and tools; core bases no decision on these two. */
  inspect(resource: string, call: Call): Promise<ResourceView>;
  list(filter: ListFilter, call: Call): Promise<ListPage>;
  /**
   * Frees what the engine itself opened. Never closes a client that was handed in. Later calls fail
   * with effect none.
   */
  close(): Promise<void>;
  readonly queue?: QueueFacet;
  readonly watch?: WatchFacet;
}

export interface RevokeRef {
  readonly resource: string;
  readonly token: bigint;
  readonly force: boolean;
}
