import assert from "node:assert/strict";
import { once } from "node:events";
import type { Lease } from "../core/holding/lease.js";
import { LeaseLostError } from "../errors.js";

/** Waits until a lease is lost, and returns the reason. */
export async function lossOf({ signal }: Lease): Promise<string> {
  if (!signal.aborted) await once(signal, "abort");
  assert.ok(signal.reason instanceof LeaseLostError);
  return signal.reason.reason;
}
