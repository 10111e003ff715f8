import type { Claim, Mode } from "../../engine.js";

export type LayoutName = "holdfast" | "kazoo" | "curator";

/** A child of a resource's node: a holder or a waiter. */
export interface QueueMember {
  readonly name: string;
  /** The sequence number from ZooKeeper: a signed 32-bit number that wraps around. */
  readonly number: number;
  readonly mode: Mode;
  readonly limit: number | null;
  readonly hash: string;
  /**
   * The czxid of the holder's own node, if this node replaces it because the grant was left behind.
   */
  readonly left: bigint | null;
}

/** The names of members, so that those of other libraries and ours are in one queue. */
export interface Layout {
  /** The name to which the server appends its number. */
  stem(claim: Pick<Claim, "mode" | "limit">, hash: string): string;
  read(name: string): QueueMember | null;
}

const NUMBER = "(-?\\d{9,10})$";
const STEM = /^(?:x|s\d+)-[0-9a-f]{32}-/;
const OURS = `^(x|s\\d+)-([0-9a-f]{32})-(?:left-([0-9a-f]+)-)?${NUMBER}`;

export const LAYOUTS: Readonly<Record<LayoutName, Layout>> = {
  holdfast: {
    stem: ({ mode, limit }, hash) =>
      mode === "exclusive" ? `x-${hash}-` : `s${limit ?? 0}-${hash}-`,
    read: reader(OURS, ([, kind = "", hash = "", czxid, number]) => {
      const limit = kind === "x" ? null : Number(kind.slice(1)) || null;
      const mode = kind === "x" ? "exclusive" : "shared";
      const left = czxid === undefined ? null : BigInt(`0x${czxid}`);
      return { number: Number(number), mode, limit, hash, left };
    }),
  },
  kazoo: {
    stem: (_, hash) => `${hash}__lock__`,
    // A ReadLock's node is named __rlock__. Readers hold together, and a writer waits for each
    // reader.
    read: reader(`^(.*)(__rlock__|__lock__|-lock-)${NUMBER}`, ([, hash = "", kind, number]) => ({
      mode: kind === "__rlock__" ? "shared" : "exclusive",
      ...{ number: Number(number), limit: null, hash, left: null },
    })),
  },
  curator: {
    stem: (_, hash) => `_c_${hash.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}-lock-`,
    read: reader(`^(?:_c_)?(.*?)-?lock-${NUMBER}`, ([, uuid = "", number]) => ({
      ...{ number: Number(number), mode: "exclusive", limit: null },
      ...{ hash: uuid.replaceAll("-", ""), left: null },
    })),
  },
};

const TOMBSTONE = "gone-";
const MARKER = /^delay-(\d+)-([0-9a-f]{32})-[0-9a-f]+-(-?\d+)$/;

export function tombstoneName(hash: string): string {
  return `${TOMBSTONE}${hash}`;
}

/**
 * The name of the node of a grant that was left behind. It has the same place in the queue, and the
 * name is never used again. Only for our own layout.
 */
export function leftName(name: string, czxid: bigint): string {
  return name.replace(STEM, `$&left-${czxid.toString(16)}-`);
}

/**
 * The holder of a marker. A repeated claim may be granted more than once, so the hash is not
 * enough.
 */
export interface Marked {
  readonly hash: string;
  readonly czxid: bigint;
  readonly number: number;
}

/**
 * A holder with a lock-delay makes the marker, and only its release removes it. The number
 * distinguishes it from a later node of the same claim. The czxid makes the name unique, so that a
 * request that was meant for an old marker and arrives late finds nothing.
 */
export function markerName(lockDelayMs: number, { hash, czxid, number }: Marked): string {
  return `delay-${lockDelayMs}-${hash}-${czxid.toString(16)}-${number}`;
}

export interface Marker {
  readonly name: string;
  readonly lockDelayMs: number;
  readonly hash: string;
  readonly number: number;
}

export function readMarker(name: string): Marker | null {
  const [, ms, hash, number] = MARKER.exec(name) ?? [];
  if (hash === undefined) return null;
  return { name, lockDelayMs: Number(ms), hash, number: Number(number) };
}

type Facts = Omit<QueueMember, "name">;

function reader(pattern: string, facts: (match: RegExpExecArray) => Facts): Layout["read"] {
  const expression = new RegExp(pattern, "s");
  return (name) => {
    const match = expression.exec(name);
    return match === null ? null : { name, ...facts(match) };
  };
}
