import type { Call, Failed, Gone, GrantRef, Released, Renewed } from "../../engine.js";
import type { Grant } from "../holding/grant.js";
import type { Caller } from "./call.js";
import { RepeatedCall } from "./repeated-call.js";

// Longer than any client library keeps resending a command.
export const TOMBSTONE_MS = 120_000;

type End = Released | Renewed | Gone;

/** Releases the grant of a lease. close() waits for it; an error goes to the caller. */
export function releaseGrant(
  caller: Caller,
  grant: Grant,
  timeoutMs: number,
): Promise<"released" | "gone"> {
  return release(caller, grant, grant.end(), timeoutMs, grant.group.validUntil);
}

/** Lets the grant of a lease expire after forMs. */
export async function letGrantExpire(
  caller: Caller,
  grant: Grant,
  forMs: number,
): Promise<"released" | "gone"> {
  grant.end();
  const { resource, grantId, index } = grant;
  const { callTimeoutMs, validUntil } = grant.group;
  const refs = [{ resource, grantId, ttlMs: forMs, index, leave: true }];
  const send = (call: Call) => caller.engine.renew(refs, call);
  const left = await end(caller, send, callTimeoutMs, validUntil);
  // A grant that was revoked before we saw it cannot be renewed. Release it, or it stays until its
  // ttl.
  return left === "released" ? left : releaseGrant(caller, grant, callTimeoutMs);
}

/** Releases a grant that nobody uses, in the background. */
export function abandonGrant(caller: Caller, grant: Grant, timeoutMs: number): void {
  abandonClaim(caller, grant, grant.end(), timeoutMs);
}

/**
 * Releases a claim that nobody waits for, in the background. The grant may exist although we never
 * saw the reply: releasing nothing is harmless, leaving it would block everyone for a whole ttl.
 */
export function abandonClaim(
  caller: Caller,
  ref: GrantRef,
  mayArrive: boolean,
  timeoutMs: number,
): void {
  const released = release(caller, ref, mayArrive, timeoutMs, -Infinity);
  caller.runInBackground("clean-up", ref.resource, released);
}

/**
 * mayArrive: a request for this grantId may still be on its way, so the release leaves a tombstone.
 */
function release(
  caller: Caller,
  { resource, grantId }: GrantRef,
  mayArrive: boolean,
  timeoutMs: number,
  goodUntil: number,
): Promise<"released" | "gone"> {
  const refs = [{ resource, grantId, tombstoneMs: mayArrive ? TOMBSTONE_MS : 0 }];
  return end(caller, (call) => caller.engine.release(refs, call), timeoutMs, goodUntil);
}

/** Ends one grant, by a release or by a last renewal. */
function end(
  caller: Caller,
  send: (call: Call) => Promise<readonly (End | Failed)[]>,
  timeoutMs: number,
  goodUntil: number,
): Promise<"released" | "gone"> {
  caller.began();
  return new Promise((resolve, reject) => {
    const onDone = (answer: End, mayHaveHappened: boolean) => {
      caller.ended();
      const isGone = answer.kind === "gone" && !(mayHaveHappened && didEnd(answer));
      resolve(isGone ? "gone" : "released");
    };
    const onGaveUp = (error: unknown) => {
      caller.ended();
      reject(error);
    };
    /**
     * A repeat that finds nothing means that the attempt before it ended the grant. But once our
     * validity is over, a successor may also have come by expiry, and then the grant was no longer
     * ours to release.
     */
    const didEnd = ({ why }: Gone) => why !== "replaced" || caller.clock.now() < goodUntil;
    new RepeatedCall(caller, timeoutMs, send, onDone, onGaveUp).start();
  });
}
