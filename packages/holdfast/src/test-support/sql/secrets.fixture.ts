// A grantId is the only proof of a grant, so whatever is shown or logged must not have it.
import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { inspect } from "node:util";

/** What a grantId looks like: as digits, as a UUID, as bytes, and as the digits of its own text. */
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

/** No error has this grantId in its message, its fields, or those of its causes. */
export function keepsSecret(error: unknown, grantId: string): void {
  const shown = inspect(error, { depth: 12, showHidden: true, maxStringLength: null });
  for (const look of looksOf(grantId)) {
    assert.ok(!shown.toLowerCase().includes(look.toLowerCase()), `${look} is in ${shown}`);
  }
}

/** What was told by events while this went on. */
export async function eventsOf(work: () => Promise<unknown>): Promise<unknown[]> {
  const told: unknown[] = [];
  const hear = (event: unknown) => told.push(event);
  subscribe("holdfast:failed", hear);
  try {
    await work();
  } finally {
    unsubscribe("holdfast:failed", hear);
  }
  return told;
}
