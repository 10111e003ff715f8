import { AsyncResource } from "node:async_hooks";

// Where Node keeps the context of a resource: the first up to version 22, the second from then on.
const CONTEXTS: readonly (string | undefined)[] = ["kResourceStore", "context_frame"];

// A Node timer captures its creator's async context. One timer of ours may serve many callers, or
// outlive its creator by far, so all of them are created in an empty context. Otherwise one caller's
// AsyncLocalStorage would leak into the others.
export const emptyContext = withoutContext(new AsyncResource("HoldfastTimers"));

/**
 * An AsyncResource captures the context in which it is created: here that of the first import, which
 * may be a request that would be kept for ever. Node has no way to create one in an empty context. Where
 * Node keeps the context elsewhere one day, this does nothing, and a test fails.
 */
function withoutContext(resource: AsyncResource): AsyncResource {
  for (const key of Object.getOwnPropertySymbols(resource)) {
    if (CONTEXTS.includes(key.description)) Reflect.set(resource, key, undefined);
  }
  return resource;
}
