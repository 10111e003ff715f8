import type { TrueGrant } from "../../../../conformance/index.js";

// Reads the node's time, whether it is certified, and all records of a resource, at one instant.
// Emptying removes the certificate, so a client that writes one has waited for the whole quarantine.
export const READ = `
  local time = redis.call('TIME')
  local certified = redis.call('EXISTS', KEYS[2])
  return { time[1], time[2], certified, unpack(redis.call('HVALS', KEYS[1])) }`;

// Empties the node. Gives whether it was certified, then each key that it forgets and its record.
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
  /** A node in quarantine grants nothing and renews nothing. */
  readonly isCertified: boolean;
  readonly records: readonly string[];
  /** The records of the resource that the node had when it was emptied. */
  readonly forgotten: readonly string[];
}

/**
 * The grants that enough nodes protect, and how long they do. A node in quarantine refuses every claim
 * for longer than any record that it forgot would have lived. So it counts for the grants of those
 * records, until they end, and for no other grant, because it accepts no record.
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
