import type { Claim } from "../../engine.js";
import { ACQUIRE_DEFAULTS, type Terms } from "../../options.js";
import { Grant } from "../holding/grant.js";
import type { HeldLease } from "../holding/lease.js";
import type { RenewalGroup } from "./renewal-group.js";

export const TERMS: Terms = {
  ...{ ...ACQUIRE_DEFAULTS, ttlMs: 1_000, renew: true, renewEveryMs: 300, maxHoldMs: Infinity },
  ...{ graceMs: 100, callTimeoutMs: 50 },
} as Terms;

export function grantOf(name = "a", drift = 0, ttlMs = 1_000): Grant {
  const claim: Claim = {
    ...{ resource: name, grantId: name.padStart(32, "0"), mode: "exclusive", limit: null },
    ...{ ttlMs: 1_000, lockDelayMs: 0, tokens: 1, label: "" },
  };
  const granted = { kind: "granted", token: 1n, tokens: 1, since: 100, ttlMs } as const;
  return new Grant(claim, granted, drift, null);
}

/** A managed grant, renewed at 500 for a second, with a lease on these terms. */
export function managed(more: Partial<Terms> = {}, name = "a"): Grant {
  const grant = grantOf(name);
  const terms = { ...TERMS, ...more };
  grant.attachLease({ token: 1n, terms, holdUntil: 100 + terms.maxHoldMs } as HeldLease);
  grant.group.managed = true;
  grant.group.confirm({ since: 500, ttlMs: 1_000 });
  return grant;
}

export function many(count: number): Grant[] {
  return Array.from({ length: count }, (_, i) => managed({}, `r${i}`));
}

/** Merges the groups of these grants, and returns the group. */
export function groupOf(grants: readonly Grant[]): RenewalGroup {
  const [host, ...others] = grants.map(({ group }) => group);
  host!.absorb(others);
  return host!;
}
