import type { Claim, Mode } from "../../../engine.js";

/** A grant in the record. The beat rises with every renewal: one that stands still is dying. */
export interface Holding {
  readonly mode: Mode;
  readonly limit: number | null;
  readonly token: string;
  readonly tokens: number;
  readonly ttlMs: number;
  readonly lockDelayMs: number;
  readonly label: string;
  readonly beat: number;
  readonly revoked: boolean;
}

/** All that is known of one resource: the data of one node. By the hash of the grantId. */
export interface Ledger {
  readonly grants: Readonly<Record<string, Holding>>;
  /**
   * Claims that were given up, and for how many milliseconds that must be remembered. There can be
   * many, so this is changed in place: a reading belongs to whoever read it.
   */
  readonly graves: Map<string, number>;
}

export function emptyLedger(): Ledger {
  return { grants: {}, graves: new Map() };
}

export function readLedger(data: Buffer): Ledger | null {
  if (data.length === 0) return emptyLedger();
  try {
    const { grants, graves } = JSON.parse(data.toString()) as Record<keyof Ledger, object>;
    if (typeof grants !== "object" || typeof graves !== "object") return null;
    return { grants: grants as Ledger["grants"], graves: new Map(Object.entries(graves)) };
  } catch {
    // Somebody else's node.
    return null;
  }
}

export function writeLedger({ grants, graves }: Ledger): Buffer {
  return Buffer.from(JSON.stringify({ grants, graves: Object.fromEntries(graves) }));
}

export function isEmpty({ grants, graves }: Ledger): boolean {
  return Object.keys(grants).length + graves.size === 0;
}

export function holdingOf(claim: Claim, token: bigint): Holding {
  const { mode, limit, tokens, ttlMs, lockDelayMs, label } = claim;
  const terms = { mode, limit, tokens, ttlMs, lockDelayMs, label };
  return { ...terms, token: String(token), beat: 0, revoked: false };
}

export function withGrant(ledger: Ledger, hash: string, holding: Holding): Ledger {
  return { ...ledger, grants: { ...ledger.grants, [hash]: holding } };
}

export function withoutGrant(ledger: Ledger, hash: string): Ledger {
  const { [hash]: _, ...grants } = ledger.grants;
  return { ...ledger, grants };
}

export function withGrave(ledger: Ledger, hash: string, forMs: number): Ledger {
  ledger.graves.set(hash, forMs);
  return ledger;
}

/** Who holds and who was revoked. Renewals do not change it, so they wake nobody. */
export function signatureOf({ grants }: Ledger): string {
  const told = Object.entries(grants).map(([hash, { revoked }]) => `${hash}${revoked ? "!" : ""}`);
  return told.sort().join(" ");
}
