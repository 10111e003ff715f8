import { type Entry, NOWHERE } from "./agenda.js";
import type { RenewRef } from "./engine.js";
import { invariant } from "./errors.js";
import type { Grant } from "./grant.js";
import type { HeldLease } from "./lease.js";

// Leases of more kinds than this in one batch are renewed one by one, rather than compared for ever.
const MOST_KINDS = 8;

/** What the keeper looks after as one: a grant that is alone, or a company. */
export type Ward = Grant | Company;

/**
 * Grants that one batch has renewed on equal terms. From then on they share one validity, which is
 * written down at their leader, and are planned, watched and renewed as one: that ten thousand leases
 * are renewed touches none of them. Whoever needs anything else leaves, with a copy of what is known.
 */
export class Company implements Entry {
  place = NOWHERE;
  /** Last of those who are left, so that its successor is found without a search. */
  leader: Grant;
  #leaderAt: number;
  // Never changed, only replaced: who has sent it, or goes through it, keeps what it had. Those who
  // have left stay in it for a while.
  #grants: readonly Grant[];
  #refs: readonly RenewRef[] | null = null;
  #size: number;

  /** All of them alone until now, or of a company that was dissolved, and akin. */
  constructor(grants: readonly Grant[]) {
    this.#grants = grants;
    this.#size = grants.length;
    this.#leaderAt = grants.length - 1;
    this.leader = grants[this.#leaderAt]!;
    for (const grant of grants) grant.company = this;
  }

  get size(): number {
    return this.#size;
  }

  get grants(): readonly Grant[] {
    if (this.#size < this.#grants.length) this.#tidy();
    return this.#grants;
  }

  /** As long as nobody comes or goes, the same list; unless the backend gave another ttl than asked for. */
  get refs(): readonly RenewRef[] {
    if (this.#refs?.[0]?.ttlMs !== this.leader.ttlMs) this.#refs = this.grants.map(refOf);
    return this.#refs!;
  }

  /** Whether nobody has come or gone since these were its grants. */
  isStill(grants: readonly Grant[]): boolean {
    return this.#grants === grants && this.#size === grants.length;
  }

  /** More that are alone until now, or of a company that was dissolved, and akin to those here. */
  add(more: readonly Grant[]): void {
    const former = this.grants;
    this.#grants = more.concat(former);
    this.#size = this.#grants.length;
    this.#leaderAt = this.#size - 1;
    this.#refs = null;
    for (const grant of more) grant.company = this;
  }

  leave(grant: Grant): void {
    invariant(grant.company === this, "whoever leaves a company is in it");
    grant.company = null;
    this.#size--;
    this.#refs = null;
    if (grant !== this.leader) grant.succeed(this.leader);
    else if (this.#size > 0) this.#findLeader();
    // Whoever has left is not held on to for long.
    if (this.#size * 2 < this.#grants.length) this.#tidy();
  }

  /** For those who go on together in another one. */
  dissolve(): readonly Grant[] {
    const { grants } = this;
    this.#size = 0;
    return grants;
  }

  #findLeader(): void {
    const former = this.leader;
    do {
      this.leader = this.#grants[--this.#leaderAt]!;
    } while (this.leader.company !== this);
    this.leader.succeed(former);
  }

  #tidy(): void {
    this.#grants = this.#grants.filter((grant) => grant.company === this);
    this.#leaderAt = this.#size - 1;
  }
}

/** Whether it is still what the keeper looks after: a grant that has joined others is not. */
export function isKept(ward: Ward): boolean {
  return ward instanceof Company ? ward.size > 0 : ward.kept && ward.company === null;
}

export function sizeOf(ward: Ward): number {
  return ward instanceof Company ? ward.size : 1;
}

export function grantsOf(ward: Ward): readonly Grant[] {
  return ward instanceof Company ? ward.grants : [ward];
}

export function leasesOf(ward: Ward): readonly HeldLease[] {
  return grantsOf(ward).map(({ lease }) => lease!);
}

/**
 * One batch has renewed these. Gives them as they go on: those who share one validity from now on, in
 * company. moved is told who is no ward any more.
 */
export function joined(wards: readonly Ward[], moved: (ward: Ward) => void): readonly Ward[] {
  if (wards.length < 2) return wards;
  const apart: Ward[] = [];
  const kinds: Ward[][] = [];
  for (const ward of wards) {
    const lead = ward.leader;
    const kind = lead.isSociable ? kinds.find(([one]) => lead.isAkinTo(one!.leader)) : undefined;
    if (kind !== undefined) kind.push(ward);
    else if (lead.isSociable && kinds.length < MOST_KINDS) kinds.push([ward]);
    else apart.push(ward);
  }
  return apart.concat(kinds.map((kind) => join(kind, moved)));
}

function join(wards: readonly Ward[], moved: (ward: Ward) => void): Ward {
  if (wards.length === 1) return wards[0]!;
  let host: Company | null = null;
  for (const ward of wards) {
    if (ward instanceof Company && (host === null || ward.size > host.size)) host = ward;
  }
  const more: Grant[] = [];
  for (const ward of wards) {
    if (ward === host) continue;
    moved(ward);
    if (ward instanceof Company) for (const grant of ward.dissolve()) more.push(grant);
    else more.push(ward);
  }
  if (host === null) return new Company(more);
  host.add(more);
  return host;
}

export function refOf({ resource, grantId, ttlMs, index }: Grant): RenewRef {
  return { resource, grantId, ttlMs, index };
}
