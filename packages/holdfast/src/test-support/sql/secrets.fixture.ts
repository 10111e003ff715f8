// A grantId is the only proof of a grant, so nothing that is shown or logged may contain it.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { inspect } from "node:util";

/** The forms of a grantId: digits, a UUID, bytes, and the hexadecimal digits of its text. */
function looksOf(grantId: string): string[] {
  const bytes = Buffer.from(grantId, "hex");
  const shown = [...bytes].map((byte) => `\\x${byte.toString(16).toUpperCase().padStart(2, "0")}`);
  return [
    grantId,
    grantId.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5"),
    Buffer.from(grantId).toString("hex"),
    shown.slice(0, 4).join(""),
  ];
}

/** Asserts that neither the error nor its causes contain this grantId, in messages or fields. */
export function keepsSecret(error: unknown, grantId: string): void {
  const shown = inspect(error, { depth: 12, showHidden: true, maxStringLength: null });
  for (const look of looksOf(grantId)) {
    assert.ok(!shown.toLowerCase().includes(look.toLowerCase()), `${look} is in ${shown}`);
  }
}

/** The events that were emitted during this work. */
export async function eventsOf(work: () => Promise<unknown>): Promise<unknown[]> {
  const reported: unknown[] = [];
  const onFailed = (event: unknown) => reported.push(event);
  subscribe("holdfast:failed", onFailed);
  try {
    await work();
  } finally {
    unsubscribe("holdfast:failed", onFailed);
  }
  return reported;
}
