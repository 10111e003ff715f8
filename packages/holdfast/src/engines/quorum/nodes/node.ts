import type { Gone } from "../../../engine.js";

/**
 * What the quorum asks of one node. A real Redis answers by a script (scripts/), the simulator's node
 * by the same rules in memory; the two are held to be equal by a test. Fences are numbers here: they
 * are microseconds, and those fit into 53 bits.
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
  /** Which try this is. A later one replaces what an earlier one of the same id left here. */
  readonly attempt: number;
  readonly mode: ModeCode;
  readonly ttlMs: number;
  readonly delayMs: number;
  /** The first token of the range that is proposed. */
  readonly fence: number;
  readonly tokens: number;
  readonly label: string;
  /**
   * 0 for a claim. A grant that lives joins a node that does not have it: where the node's counter is
   * at most this, which its holder has heard of while it held.
   */
  readonly past: number;
  /** When it began to wait, in the nodes' time in µs: those with later ones make way. 0 for not at all. */
  readonly ticket: number;
  /** How long it takes this claim to come when it is called; others wait for so long. */
  readonly arrivalMs: number;
  /** Of the call, as that of a renewal: what comes late changes no end that was set later. */
  readonly order: number;
}

export interface RenewRequest {
  readonly verb: "renew";
  readonly resource: string;
  readonly id: string;
  readonly ttlMs: number;
  /** Renewals take effect in this order, in whatever order they arrive. */
  readonly order: number;
  /** Which of the grant's tokens is in use. */
  readonly index: number;
  /** The holder goes, and only time or force ends the grant. */
  readonly leave: boolean;
}

export interface ReleaseRequest {
  readonly verb: "release";
  readonly resource: string;
  readonly id: string;
  /** Ends what attempts up to this one left, unless a later call has asked for it since. */
  readonly upTo: number;
  readonly order: number;
  readonly tombstoneMs: number;
  /** The claim is over, and those who wait are told; else only an attempt is. */
  readonly tell: boolean;
}

/** Whoever is in the way on one node. */
export interface NodeHolder {
  readonly mode: ModeCode;
  readonly fence: number;
  readonly tokens: number;
  /** Which of them is in use, as far as this node has heard. */
  readonly index: number;
  readonly label: string;
  /** 0 or less within its lock-delay. */
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
      /** For certain, as the node answered. */
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

/** The node is new, was restarted, emptied or followed another: what it acknowledged may be gone. */
export interface Uncertified {
  readonly kind: "uncertified";
  readonly runId: string;
  readonly replId: string;
  /** Null where nobody has begun to wait. */
  readonly nonce: string | null;
  /** Whether the node has certified under another life before; for messages. */
  readonly lapsed: boolean;
}

export interface NodeFailure {
  readonly kind: "failed";
  readonly effect: "none" | "unknown";
  readonly error: Error;
}

/** us is the node's time in microseconds as it answered; NaN where it did not. */
export type Answered = (answer: NodeAnswer, us: number) => void;

export interface QuorumNode {
  /** The same for all clients: the names together are the member list. */
  readonly name: string;
  /** Calls back once, or never: the quorum keeps its own deadlines. */
  ask(request: NodeRequest, answered: Answered): void;
}
