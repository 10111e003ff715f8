import { AsyncResource } from "node:async_hooks";

// The fields in which Node keeps the context of a resource: the first one up to Node 22, the second
// one since.
const CONTEXTS: readonly (string | undefined)[] = ["kResourceStore", "context_frame"];

// A Node timer captures its creator's async context. One timer of ours may serve many callers, or
// outlive its creator by far, so all timers are created in an empty context. Otherwise one caller's
// AsyncLocalStorage would leak into the others.
export const emptyContext = withoutContext(new AsyncResource("HoldfastTimers"));

/**
 * An AsyncResource captures the context in which it is created: here that of the first import,
 * which may be a request that would then be kept for ever. Node offers no way to create one in an
 * empty context. If Node moves the context to another field one day, this does nothing, and a test
 * fails.
 */
function withoutContext(resource: AsyncResource): AsyncResource {
  for (const key of Object.getOwnPropertySymbols(resource)) {
    if (CONTEXTS.includes(key.description)) Reflect.set(resource, key, undefined);
  }
  return resource;
}
