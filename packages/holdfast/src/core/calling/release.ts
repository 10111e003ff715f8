import type { Call, Failed, Gone, GrantRef, Released, Renewed } from "../../engine.js";
import type { Grant } from "../holding/grant.js";
import type { Caller } from "./call.js";
import { RepeatedCall } from "./repeated-call.js";

// Long enough that no client library still resends a command when the tombstone goes.
export const TOMBSTONE_MS = 120_000;

type End = Released | Renewed | Gone;

/** Gives back what a lease stood on. close() waits for it; its error is the caller's. */
export function releaseGrant(
  caller: Caller,
  grant: Grant,
  timeoutMs: number,
): Promise<"released" | "gone"> {
  return release(caller, grant, grant.end(), timeoutMs, grant.group.validUntil);
}

/** Leaves what a lease stood on to end by itself after forMs. */
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
  // A grant that was revoked unseen cannot be renewed, and would stay until its ttl.
  return left === "released" ? left : releaseGrant(caller, grant, callTimeoutMs);
}

/** Gives up a grant that nobody uses any more. */
export function abandonGrant(caller: Caller, grant: Grant, timeoutMs: number): void {
  abandonClaim(caller, grant, grant.end(), timeoutMs);
}

/**
 * Gives up a claim that nobody waits for any more. The grant may exist although we never saw the
 * reply: releasing nothing is harmless, leaving it would block everyone for a whole ttl.
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

/** mayArrive: a request for this grantId may still be on its way, and must find a tombstone. */
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
     * What a repeat does not find any more, the attempt before it has ended. Once our time is over a
     * successor may have come by expiry as well, and then it was not ours to give back.
     */
    const didEnd = ({ why }: Gone) => why !== "replaced" || caller.clock.now() < goodUntil;
    new RepeatedCall(caller, timeoutMs, send, onDone, onGaveUp).start();
  });
}
