import type { Claim, Mode } from "../../engine.js";

export type LayoutName = "holdfast" | "kazoo" | "curator";

/** A child of a resource's node that holds, or waits for its turn. */
export interface Contender {
  readonly name: string;
  /** As ZooKeeper numbered it; 32 bits with a sign, and after the greatest comes the least. */
  readonly number: number;
  readonly mode: Mode;
  readonly limit: number | null;
  readonly hash: string;
}

/** How contenders are named, so that those of other libraries and ours stand in one line. */
export interface Layout {
  /** What the server appends its number to. */
  stem(claim: Pick<Claim, "mode" | "limit">, hash: string): string;
  read(name: string): Contender | null;
}

const NUMBER = "(-?\\d{9,10})$";

export const LAYOUTS: Readonly<Record<LayoutName, Layout>> = {
  holdfast: {
    stem: ({ mode, limit }, hash) =>
      mode === "exclusive" ? `x-${hash}-` : `s${limit ?? 0}-${hash}-`,
    read: reader(`^(x|s\\d+)-([0-9a-f]{32})-${NUMBER}`, ([, kind = "", hash = "", number]) => {
      const limit = kind === "x" ? null : Number(kind.slice(1)) || null;
      return { number: Number(number), mode: kind === "x" ? "exclusive" : "shared", limit, hash };
    }),
  },
  kazoo: {
    stem: (_, hash) => `${hash}__lock__`,
    read: reader(`^(.*)(?:__lock__|-lock-)${NUMBER}`, ([, hash = "", number]) => ({
      ...{ number: Number(number), mode: "exclusive", limit: null, hash },
    })),
  },
  curator: {
    stem: (_, hash) => `_c_${hash.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")}-lock-`,
    read: reader(`^(?:_c_)?(.*?)-?lock-${NUMBER}`, ([, uuid = "", number]) => ({
      ...{ number: Number(number), mode: "exclusive", limit: null, hash: uuid.replaceAll("-", "") },
    })),
  },
};

const TOMBSTONE = "gone-";
const MARKER = /^delay-(\d+)-([0-9a-f]{32})$/;

export function tombstoneName(hash: string): string {
  return `${TOMBSTONE}${hash}`;
}

/** Left by a holder with a lock-delay, and taken away by its release alone. */
export function markerName(lockDelayMs: number, hash: string): string {
  return `delay-${lockDelayMs}-${hash}`;
}

export interface Marker {
  readonly name: string;
  readonly lockDelayMs: number;
  readonly hash: string;
}

export function readMarker(name: string): Marker | null {
  const [, ms, hash] = MARKER.exec(name) ?? [];
  return hash === undefined ? null : { name, lockDelayMs: Number(ms), hash };
}

type Facts = Omit<Contender, "name">;

function reader(pattern: string, facts: (match: RegExpExecArray) => Facts): Layout["read"] {
  const expression = new RegExp(pattern, "s");
  return (name) => {
    const match = expression.exec(name);
    return match === null ? null : { name, ...facts(match) };
  };
}
