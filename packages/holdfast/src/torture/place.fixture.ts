import type { TrueGrant } from "../conformance/index.js";
import { connect } from "../connect.js";
import type { Locks } from "../locks.js";

/** What an engine says of a resource, for places whose backend is read in no other way. */
export async function viewedTruth(
  url: string,
  ttlMs: number,
): Promise<{ truth(resource: string): Promise<readonly TrueGrant[]> } & AsyncDisposable> {
  const locks: Locks = await connect(url, { defaults: { ttlMs } });
  return {
    truth: async (resource) =>
      (await locks.inspect(resource)).holders.map(({ token, remainingMs }) => ({
        token,
        remainingMs,
      })),
    [Symbol.asyncDispose]: () => locks.close(),
  };
}

/** Ends in the reverse order of their beginning. */
export async function disposeAll(all: readonly AsyncDisposable[]): Promise<void> {
  for (const one of [...all].reverse()) await one[Symbol.asyncDispose]();
}
