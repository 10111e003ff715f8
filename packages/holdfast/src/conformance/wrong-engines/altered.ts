import type { Engine, QueueFacet } from "../../engine.js";
import type { MemoryGrant, MemoryStore } from "../../engines/memory/store.js";
import type { Overlay } from "./memory-harness.js";

/** The memory engine with one defect, and the law that must see it. */
export interface WrongEngine {
  readonly defect: string;
  readonly law: string;
  readonly overlay?: Overlay;
  readonly store?: () => MemoryStore;
}

/** The engine with some of its verbs replaced. */
export function altered(inner: Engine, changes: Partial<Engine>): Engine {
  return {
    name: inner.name,
    traits: inner.traits,
    tryAcquire: (claim, call) => inner.tryAcquire(claim, call),
    renew: (grants, call) => inner.renew(grants, call),
    release: (grants, call) => inner.release(grants, call),
    check: (sequence, call) => inner.check(sequence, call),
    revoke: (sequence, call) => inner.revoke(sequence, call),
    inspect: (resource, call) => inner.inspect(resource, call),
    list: (filter, call) => inner.list(filter, call),
    close: () => inner.close(),
    ...(inner.queue ? { queue: inner.queue } : {}),
    ...(inner.watch ? { watch: inner.watch } : {}),
    ...changes,
  };
}

export function alteredQueue(inner: Engine, changes: Partial<QueueFacet>): Engine {
  return altered(inner, { queue: { ...inner.queue!, ...changes } });
}

export function memoryGrantOf(
  store: MemoryStore,
  ref: { readonly resource: string; readonly grantId: string },
): MemoryGrant | undefined {
  return store.resources.get(ref.resource)?.grants.get(ref.grantId);
}

export function memoryGrantsOf(store: MemoryStore, resource: string): MemoryGrant[] {
  return [...(store.resources.get(resource)?.grants.values() ?? [])];
}
