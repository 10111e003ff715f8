import { channels } from "../../events.js";
import { keyOf } from "./keys.js";
import { REDIS_DEFAULTS } from "./options.js";
import { SLOTS, slotOf } from "./slots.js";

const PRIMARIES = 3;

/** Names of resources that a new Cluster keeps in this shard: a third of the slots, in order. */
export function namesIn(shard: number, count: number, prefix = "r"): string[] {
  const found: string[] = [];
  for (let i = 0; found.length < count; i++) {
    const name = `${prefix}${i}`;
    const slot = slotOf(keyFor(name));
    if (Math.floor((slot * PRIMARIES) / SLOTS) === shard) found.push(name);
  }
  return found;
}

export function keyFor(resource: string): string {
  return keyOf(REDIS_DEFAULTS.prefix, resource);
}

/** Hears when leases of a resource were renewed in this process, until it is disposed of. */
export function renewals(resource: string): Disposable & { longestGapMs(): number } {
  const times = [performance.now()];
  const hear = (event: unknown) => {
    if ((event as { resource: string }).resource === resource) times.push(performance.now());
  };
  channels.renewed.subscribe(hear);
  return {
    longestGapMs: () => {
      const all = [...times, performance.now()];
      return Math.max(...all.slice(1).map((at, i) => at - all[i]!));
    },
    [Symbol.dispose]: () => channels.renewed.unsubscribe(hear),
  };
}
