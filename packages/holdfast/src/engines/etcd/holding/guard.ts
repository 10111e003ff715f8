import { UsageError } from "../../../errors.js";
import { created } from "../client/requests.js";
import type { TrackedClaims } from "./tracked-claims.js";

/** The etcd key that proves a grant, for a transaction of your own. */
export interface EtcdGuard {
  readonly key: string;
  readonly createRevision: string;
  /** An entry for `compare` in a transaction of the JSON gateway. */
  readonly compare: {
    readonly key: string;
    readonly target: "CREATE";
    readonly result: "EQUAL";
    readonly create_revision: string;
  };
}

/** The guard of a lease that this process holds. */
export function guardOf(
  trackedClaims: TrackedClaims,
  { resource, token }: { readonly resource: string; readonly token: bigint },
): EtcdGuard {
  const held = trackedClaims.find(resource, token >> 10n);
  if (held === null) throw new UsageError(`this engine holds no such lease of "${resource}"`);
  const { key, created: revision } = held.self;
  const createRevision = String(revision);
  const { key: encoded } = created(key, revision);
  const equal = { target: "CREATE", result: "EQUAL" } as const;
  const compare = { key: encoded, ...equal, create_revision: createRevision };
  return { key, createRevision, compare };
}
