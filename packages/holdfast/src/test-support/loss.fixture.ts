import assert from "node:assert/strict";
import { once } from "node:events";
import { LeaseLostError } from "../errors.js";
import type { Lease } from "../lease.js";

/** Waits until a lease is lost; gives the reason. */
export async function lossOf({ signal }: Lease): Promise<string> {
  if (!signal.aborted) await once(signal, "abort");
  assert.ok(signal.reason instanceof LeaseLostError);
  return signal.reason.reason;
}
