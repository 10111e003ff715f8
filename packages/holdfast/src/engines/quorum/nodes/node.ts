import type { Gone } from "../../../engine.js";

/**
 * What the quorum asks of one node. A real Redis answers with a script (scripts/). The simulator's node
 * follows the same rules in memory, and a test holds the two equal. Fences are numbers here: they are
 * microseconds, which fit into 53 bits.
 */
export type NodeRequest =
  | AcquireRequest
  | RenewRequest
  | ReleaseRequest
  | {
      readonly verb: "check";
      readonly resource: string;
      readonly mode: ModeCode;
      readonly token: number;
    }
  | {
      readonly verb: "revoke";
      readonly resource: string;
      readonly token: number;
      readonly force: boolean;
    }
  | { readonly verb: "inspect"; readonly resource: string }
  | { readonly verb: "mark"; readonly nonce: string }
  | {
      readonly verb: "certify";
      readonly runId: string;
      readonly replId: string;
      readonly nonce: string;
    };

/** x is exclusive, s is shared. */
export type ModeCode = "x" | "s";

export interface AcquireRequest {
  readonly verb: "acquire";
  readonly resource: string;
  readonly id: string;
  /** The number of this attempt. A later attempt replaces the record of an earlier one with the same id. */
  readonly attempt: number;
  readonly mode: ModeCode;
  readonly ttlMs: number;
  readonly delayMs: number;
  /** The first token of the proposed range. */
  readonly fence: number;
  readonly tokens: number;
  readonly label: string;
  /**
   * 0 for a claim. A live grant may join a node that does not have it if the node's counter is at most
   * this, which is the highest counter that its holder heard of while it held.
   */
  readonly past: number;
  /** When the claim began to wait, in the nodes' time in µs; 0 if it does not. Later tickets give way. */
  readonly ticket: number;
  /** How long this claim takes to arrive when a node calls it. Others wait for it that long. */
  readonly arrivalMs: number;
  /** The order of the call, as for a renewal: a late request changes no end that a later call set. */
  readonly order: number;
}

export interface RenewRequest {
  readonly verb: "renew";
  readonly resource: string;
  readonly id: string;
  readonly ttlMs: number;
  /** Renewals take effect in this order, whatever the order in which they arrive. */
  readonly order: number;
  /** The index of the grant's token in use. */
  readonly index: number;
  /** The holder leaves the grant behind: only its expiry or a forced revoke ends it. */
  readonly leave: boolean;
}

export interface ReleaseRequest {
  readonly verb: "release";
  readonly resource: string;
  readonly id: string;
  /** Ends the records of attempts up to this one, unless a later call has asked for them since. */
  readonly upTo: number;
  readonly order: number;
  readonly tombstoneMs: number;
  /** True where the whole claim is over, so that waiters are notified; false for one attempt. */
  readonly tell: boolean;
}

/** A holder that is in the way on one node. */
export interface NodeHolder {
  readonly mode: ModeCode;
  readonly fence: number;
  readonly tokens: number;
  /** The index of the token in use, as far as this node has heard. */
  readonly index: number;
  readonly label: string;
  /** 0 or less during the lock-delay. */
  readonly leftMs: number;
  readonly delayMs: number;
  /** Since it was accepted here. */
  readonly ageMs: number;
  readonly revoked: boolean;
}

export type NodeAnswer =
  | { readonly kind: "accepted" }
  | {
      readonly kind: "known";
      readonly attempt: number;
      readonly fence: number;
      readonly tokens: number;
      /** What was certainly left when the node answered. */
      readonly leftMs: number;
    }
  | { readonly kind: "busy"; readonly counter: number; readonly holders: readonly NodeHolder[] }
  | { readonly kind: "counter"; readonly counter: number }
  | { readonly kind: "skew" }
  | { readonly kind: "gone"; readonly why: Gone["why"] }
  | { readonly kind: "renewed"; readonly leftMs: number }
  | { readonly kind: "released" }
  | { readonly kind: "revoked" }
  | { readonly kind: "checked"; readonly live: boolean }
  | { readonly kind: "view"; readonly holders: readonly NodeHolder[] }
  | Uncertified
  | { readonly kind: "certified" }
  | { readonly kind: "terms"; readonly terms: string }
  | NodeFailure;

/** The node is new, was restarted or emptied, or was a replica: acknowledged grants may be lost. */
export interface Uncertified {
  readonly kind: "uncertified";
  readonly runId: string;
  readonly replId: string;
  /** Null while no client has started the quarantine. */
  readonly nonce: string | null;
  /** Whether the node was certified in an earlier life; for messages. */
  readonly lapsed: boolean;
}

export interface NodeFailure {
  readonly kind: "failed";
  readonly effect: "none" | "unknown";
  readonly error: Error;
}

/** us is the node's time in microseconds at its answer; NaN without an answer. */
export type Answered = (answer: NodeAnswer, us: number) => void;

export interface QuorumNode {
  /** The same for all clients: the names together are the member list. */
  readonly name: string;
  /** Calls back once, or never: the quorum keeps its own deadlines. */
  ask(request: NodeRequest, answered: Answered): void;
}
