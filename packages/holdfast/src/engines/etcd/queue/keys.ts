import { createHash } from "node:crypto";

/** Notes have hex names, so no note is mistaken for a canary. */
const CANARY = "lease-";

/**
 * A half-open range of keys. That of a resource holds every key that starts with its name and a
 * slash.
 */
export interface KeyRange {
  readonly start: string;
  readonly end: string;
}

/**
 * Names a grant or a waiter in a key. Everybody who may read the keys sees the name, so it is a
 * hash: whoever knows the grantId itself can end the grant.
 */
export function hashOf(grantId: string): string {
  return createHash("sha256").update(grantId).digest("hex").slice(0, 32);
}

/**
 * Names of keys: prefix, resource, slash, and the grant or waiter. Only the slash and the percent
 * sign of a resource are encoded. So no resource's key range lies inside another's, and no resource
 * begins with "%g" or "%n", which are for tombstones and notes.
 */
export class Keys {
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  rangeOf(resource: string): KeyRange {
    const name = this.#prefix + resource.replace(/%/g, "%25").replace(/\//g, "%2F");
    return { start: `${name}/`, end: `${name}0` };
  }

  claimKey(resource: string, grantId: string): string {
    return `${this.rangeOf(resource).start}h${hashOf(grantId)}`;
  }

  tombstone(grantId: string): string {
    return `${this.#prefix}%gone/${hashOf(grantId)}`;
  }

  /** The keys with which other engines notify one engine. */
  notes(engineId: string): KeyRange {
    return { start: `${this.#prefix}%note/${engineId}/`, end: `${this.#prefix}%note/${engineId}0` };
  }

  /** A key among an engine's notes that lives as long as one lease of that engine. */
  canary(engineId: string, lease: string): string {
    return `${this.notes(engineId).start}${CANARY}${lease}`;
  }

  get all(): KeyRange {
    return { start: this.#prefix || "\0", end: this.#prefix === "" ? "\0" : after(this.#prefix) };
  }

  /** How many characters of a key come before the name of its resource. */
  get namesFrom(): number {
    return [...this.#prefix].length;
  }

  /** The resource that a key belongs to, or null. */
  resourceOf(key: string): string | null {
    const found = /^([^/]+)\/[^/]+$/s.exec(key.slice(this.#prefix.length));
    const name = found?.[1];
    if (!key.startsWith(this.#prefix) || name === undefined || /%(?!25|2F)/.test(name)) return null;
    return name.replace(/%2F/g, "/").replace(/%25/g, "%");
  }
}

/** The lease of a canary, or null for a note. */
export function leaseOfCanary(key: string): string | null {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return name.startsWith(CANARY) ? name.slice(CANARY.length) : null;
}

/**
 * The key of the marker of a grant with a lock-delay. It stays when the grant's own key is lost.
 */
export function markerOf(record: string): string {
  const slash = record.lastIndexOf("/") + 1;
  return `${record.slice(0, slash)}~${record.slice(slash)}`;
}

export function markersIn(keyRange: KeyRange): KeyRange {
  return { start: `${keyRange.start}~`, end: `${keyRange.start}\x7f` };
}

/** The grant's own key for a marker, or null for a key that is not a marker. */
export function markedBy(key: string): string | null {
  const slash = key.lastIndexOf("/") + 1;
  const marked = key.slice(0, slash) + key.slice(slash + 1);
  return key[slash] === "~" && isOurs(marked) ? marked : null;
}

export function isOurs(key: string): boolean {
  return /\/h[0-9a-f]{32}$/.test(key);
}

/** The first key after all that begin with this prefix. */
function after(prefix: string): string {
  // The last character of a resolved prefix is ASCII, see options.ts.
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}
