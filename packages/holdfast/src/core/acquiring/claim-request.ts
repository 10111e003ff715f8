import type { HolderView } from "../../engine.js";
import type { Terms } from "../../options.js";
import type { Caller } from "../calling/call.js";
import type { TokenCheck } from "../calling/token-check.js";
import type { Grant } from "../holding/grant.js";
import type { PauseTerms } from "./claim-pauses.js";
import type { PendingClaim } from "./pending-claim.js";
import type { WaiterHeartbeats } from "./waiter-heartbeats.js";

/** What one claim asks for, and how long it waits. */
export interface ClaimRequest extends PauseTerms {
  readonly terms: Terms;
  readonly tokens: number;
  readonly startedAt: number;
  readonly waitMs: number;
}

/** What all claims of one connection share. */
export interface ClaimContext {
  readonly caller: Caller;
  readonly tokenCheck: TokenCheck;
  /** Null when the engine keeps no queue; the claim polls then. */
  readonly heartbeats: WaiterHeartbeats | null;
  readonly drift: number;
}

/** Is told how a claim ends, and whom it waits for. */
export interface ClaimListener {
  /** Either granted or failed is called, once. */
  granted(grant: Grant, now: number): void;
  failed(error: unknown, claim: PendingClaim): void;
  /** Called whenever the backend names the holders that the claim waits for. */
  onHolders(holders: readonly HolderView[]): void;
}
