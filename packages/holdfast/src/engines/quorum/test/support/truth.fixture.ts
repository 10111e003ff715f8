import type { TrueGrant } from "../../../../conformance/index.js";

// The node's time, whether it is certified, and all records of a resource, as they are at one instant.
// Emptying takes the certificate away, so whoever writes one has waited the quarantine out.
export const READ = `
  local time = redis.call('TIME')
  local certified = redis.call('EXISTS', KEYS[2])
  return { time[1], time[2], certified, unpack(redis.call('HVALS', KEYS[1])) }`;

// Empties the node. Gives whether it was certified, and what it forgets: keys and records, in turn.
export const EMPTY = `
  local had = { redis.call('EXISTS', KEYS[1]) }
  for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
    for _, record in ipairs(redis.call('HVALS', key)) do
      had[#had + 1] = key
      had[#had + 1] = record
    end
  end
  redis.call('FLUSHALL')
  return had`;

/** What one node has of a resource at an instant of its own clock. */
export interface NodeState {
  readonly atMs: number;
  /** A node in quarantine lets nobody in, and renews nothing. */
  readonly isCertified: boolean;
  readonly records: readonly string[];
  /** What it had of the resource when it was emptied. */
  readonly forgotten: readonly string[];
}

/**
 * The grants that enough nodes keep others from, and until when enough of them do. A node in quarantine
 * keeps everybody out for longer than any record that it has forgotten would have lived, so it counts
 * for those to whom these records were, until their ends; for nobody else, because it takes no record.
 */
export function grantsOn(nodes: readonly NodeState[], writeQuorum: number): TrueGrant[] {
  const lefts = new Map<string, number[]>();
  for (const { atMs, isCertified, records, forgotten } of nodes) {
    for (const record of isCertified ? records : forgotten) {
      const [, , fence, , , , , , , ends] = record.split(":");
      const leftMs = Number(ends) - atMs;
      if (leftMs > 0) lefts.set(fence!, [...(lefts.get(fence!) ?? []), Math.ceil(leftMs)]);
    }
  }
  return [...lefts].flatMap(([fence, on]) => {
    const remainingMs = on.sort((a, b) => b - a)[writeQuorum - 1];
    return remainingMs === undefined ? [] : [{ token: BigInt(fence), remainingMs }];
  });
}
