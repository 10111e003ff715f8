import type { Arena } from "./acquire.js";
import type { Timer } from "./clock.js";
import { Cohort, type CohortHome } from "./cohort.js";
import type { Keeper } from "./keeper.js";
import type { Custody, HeldLease } from "./lease.js";
import type { Terms } from "./options.js";

// Those who stand behind one of their own process are held back so long at most.
const GATHER_MS = 3;
// A party passes its grant on until everybody in it had a turn, however long each of them takes.
const BUDGET = { handOvers: Infinity, handOverMs: Infinity, tokensPerWaiter: 1 };

interface Gathering {
  readonly party: Cohort;
  readonly terms: Terms;
  readonly timer: Timer;
  size: number;
}

/**
 * The strict waiters of one process on one resource. The first claims for itself. Those who come while
 * it waits or holds are gathered for a blink, and arrive at the backend as a party: with one claim,
 * whose grant they pass on in their order. Nobody joins a party that was sent. So all are served in
 * the order in which they arrived there, as if each had a place of its own, and it takes one round
 * trip instead of one for each.
 */
export class StrictLine {
  /** Of a lease that somebody claimed for itself. */
  readonly custody: Custody;
  readonly #resource: string;
  readonly #arena: Arena;
  readonly #home: CohortHome;
  readonly #onIdle: () => void;
  /** Those that were sent and have not ended. */
  readonly #parties = new Set<Cohort>();
  #gathering: Gathering | null = null;
  /** How many claim or hold for themselves. */
  #alone = 0;
  /** How many releases have not been answered. */
  #releasing = 0;

  constructor(resource: string, arena: Arena, keeper: Keeper, sole: Custody, onIdle: () => void) {
    this.#resource = resource;
    this.#arena = arena;
    const onRelease = (released: Promise<unknown>) => this.#follow(released);
    this.custody = new WatchedCustody(sole, onRelease, () => this.ended());
    this.#home = {
      ...{ arena, keeper, budget: BUDGET },
      sole: new WatchedCustody(sole, onRelease, () => {}),
      onIdle: (party) => this.#over(party),
    };
    this.#onIdle = onIdle;
  }

  /** Somebody claims for itself; ended() follows, unless it gets a lease and this has the custody. */
  began(): void {
    this.#alone++;
  }

  ended(): void {
    this.#alone--;
    this.#moveUp();
  }

  join(terms: Terms, startedAt: number): Promise<HeldLease> {
    if (this.#gathering !== null && !isAlike(this.#gathering.terms, terms)) this.send();
    this.#gathering ??= this.#gather(terms);
    const gathering = this.#gathering;
    const waiting = gathering.party.wait(terms, startedAt);
    if (++gathering.size >= this.#arena.backend.engine.traits.tokenRange) this.send();
    return waiting;
  }

  /** Sends whoever is gathered: one who comes after them, and does not join, must not overtake them. */
  send(): void {
    const gathering = this.#gathering;
    if (gathering === null) return;
    this.#gathering = null;
    gathering.timer.cancel();
    this.#parties.add(gathering.party);
    gathering.party.open();
  }

  close(error: Error): void {
    this.#gathering?.party.close(error);
    for (const party of [...this.#parties]) party.close(error);
  }

  #gather(terms: Terms): Gathering {
    const { clock } = this.#arena.backend;
    const party = new Cohort(this.#resource, this.#resource, this.#home);
    party.shut();
    return { party, terms, timer: clock.timer(GATHER_MS, () => this.send(), true), size: 0 };
  }

  #over(party: Cohort): void {
    this.#parties.delete(party);
    if (this.#gathering?.party === party) {
      this.#gathering.timer.cancel();
      this.#gathering = null;
    }
    this.#moveUp();
  }

  #follow(released: Promise<unknown>): void {
    this.#releasing++;
    const answered = () => {
      this.#releasing--;
      this.#moveUp();
    };
    released.then(answered, answered);
  }

  /**
   * With nobody ahead of them, those who are gathered follow. Whoever gave the resource back learns of
   * it at this moment, and goes along if it comes back at once.
   */
  #moveUp(): void {
    if (this.#isTaken) return;
    if (this.#gathering === null) this.#onIdle();
    else process.nextTick(() => this.#isTaken || this.send());
  }

  get #isTaken(): boolean {
    return this.#alone > 0 || this.#releasing > 0 || this.#parties.size > 0;
  }
}

/** Tells when a lease is given back, and when it is over, given back or lost. */
class WatchedCustody implements Custody {
  readonly #sole: Custody;
  readonly #onRelease: (released: Promise<unknown>) => void;
  readonly #onOver: () => void;

  constructor(sole: Custody, onRelease: (released: Promise<unknown>) => void, onOver: () => void) {
    this.#sole = sole;
    this.#onRelease = onRelease;
    this.#onOver = onOver;
  }

  renew(lease: HeldLease, ttlMs: number | undefined): Promise<void> {
    return this.#sole.renew(lease, ttlMs);
  }

  giveBack(lease: HeldLease): Promise<"released" | "gone"> {
    const released = this.#sole.giveBack(lease);
    this.#onRelease(released);
    this.#onOver();
    return released;
  }

  onLost(lease: HeldLease): void {
    this.#sole.onLost(lease);
    this.#onOver();
  }

  giveUp(lease: HeldLease): void {
    this.#sole.giveUp(lease);
  }

  async leave(lease: HeldLease, forMs: number): Promise<"released" | "gone"> {
    try {
      return await this.#sole.leave(lease, forMs);
    } finally {
      this.#onOver();
    }
  }
}

/** Whether one grant can serve both, and one label stand for both in the backend's line. */
function isAlike(one: Terms, other: Terms): boolean {
  return (
    one.ttlMs === other.ttlMs && one.lockDelayMs === other.lockDelayMs && one.label === other.label
  );
}
