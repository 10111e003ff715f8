import type { RenewalGroup } from "./renewal-group.js";

// A batch forms at most this many new groups, because comparing more terms would cost too much.
const MOST_KINDS = 8;

/**
 * Merges the groups of one batch that have the same terms. Returns the groups that remain, and
 * calls onAbsorbed for each of the others.
 */
export function regroup(
  groups: readonly RenewalGroup[],
  onAbsorbed: (group: RenewalGroup) => void,
): readonly RenewalGroup[] {
  if (groups.length < 2) return groups;
  const apart: RenewalGroup[] = [];
  const kinds: RenewalGroup[][] = [];
  for (const group of groups) {
    const kind = group.canShareRenewal
      ? kinds.find(([one]) => group.hasSameTerms(one!))
      : undefined;
    if (kind !== undefined) kind.push(group);
    else if (group.canShareRenewal && kinds.length < MOST_KINDS) kinds.push([group]);
    else apart.push(group);
  }
  return apart.concat(kinds.map((kind) => merge(kind, onAbsorbed)));
}

function merge(
  groups: readonly RenewalGroup[],
  onAbsorbed: (group: RenewalGroup) => void,
): RenewalGroup {
  const largest = groups.reduce((one, other) => (other.size > one.size ? other : one));
  const others = groups.filter((group) => group !== largest);
  if (others.length > 0) largest.absorb(others);
  for (const other of others) onAbsorbed(other);
  return largest;
}
