import { createHash } from "node:crypto";

/** Notes are named in hex, so none is taken for a canary. */
const CANARY = "lease-";

/** A half-open range of keys. That of a resource holds every key that starts with its name and a slash. */
export interface KeyRange {
  readonly start: string;
  readonly end: string;
}

/**
 * What stands for a grant or waiter in a key's name. Everybody who may read the keys sees it, so it
 * is not the grantId, which is as good as the grant.
 */
export function hashOf(grantId: string): string {
  return createHash("sha256").update(grantId).digest("hex").slice(0, 32);
}

/**
 * Names of keys: prefix, resource, slash, and who it is about. Of a name only the slash and the
 * percent sign are encoded; so no resource's key range lies in another's, and no name begins with "%g"
 * or "%n", which is where tombstones and notes are.
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

  entry(resource: string, grantId: string): string {
    return `${this.rangeOf(resource).start}h${hashOf(grantId)}`;
  }

  tombstone(grantId: string): string {
    return `${this.#prefix}%gone/${hashOf(grantId)}`;
  }

  /** Where others leave word for one engine. */
  notes(engineId: string): KeyRange {
    return { start: `${this.#prefix}%note/${engineId}/`, end: `${this.#prefix}%note/${engineId}0` };
  }

  /** A key that lives as long as a lease of one engine, where that engine's notes are. */
  canary(engineId: string, lease: string): string {
    return `${this.notes(engineId).start}${CANARY}${lease}`;
  }

  get all(): KeyRange {
    return { start: this.#prefix || "\0", end: this.#prefix === "" ? "\0" : after(this.#prefix) };
  }

  /** The resource in whose key range a key is, or null. */
  resourceOf(key: string): string | null {
    const found = /^([^/]+)\/[^/]+$/s.exec(key.slice(this.#prefix.length));
    const name = found?.[1];
    if (!key.startsWith(this.#prefix) || name === undefined || /%(?!25|2F)/.test(name)) return null;
    return name.replace(/%2F/g, "/").replace(/%25/g, "%");
  }
}

/** The lease that a canary sits on, or null for a note. */
export function leaseOfCanary(key: string): string | null {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return name.startsWith(CANARY) ? name.slice(CANARY.length) : null;
}

/** What marks a grant with a lock-delay: it stays when the grant's own key is lost. */
export function markerOf(entry: string): string {
  const slash = entry.lastIndexOf("/") + 1;
  return `${entry.slice(0, slash)}~${entry.slice(slash)}`;
}

export function markersIn(keyRange: KeyRange): KeyRange {
  return { start: `${keyRange.start}~`, end: `${keyRange.start}\x7f` };
}

/** The grant's own key that a marker belongs to, or null for a key that is no marker. */
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
