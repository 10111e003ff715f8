import { type Clock, systemClock } from "../../../core/runtime/clock.js";
import { elapsedMs, type LeaderTime } from "../session/leader-time.js";
import { type Holding, type Ledger, leftAt } from "./record.js";

const REMEMBERED = 10_000;
/**
 * Who waits looks again within a second, or at its own pace. A path that was looked at since is not
 * forgotten, however many there are: whoever looked at more dead holders than are remembered, one after
 * the other, would never find out that they are dead.
 */
const IN_USE_MS = 30_000;

interface Sighting {
  readonly state: string;
  since: number;
  /** Whether we wrote this state ourselves: then it stands since that was sent, or later. */
  readonly isOurs: boolean;
  /** Whether we have written since its holder left it behind, and so know the leader's time. */
  timed: boolean;
}

interface Seen {
  readonly at: number;
  readonly grants: Map<string, Sighting>;
}

/** A grant as this process judges it, by how long it has seen it unchanged. */
export interface Judged {
  readonly hash: string;
  readonly holding: Holding;
  /** More than 0 while it lives. */
  readonly leftMs: number;
  /** Until its lock-delay is over, too. */
  readonly blocksMs: number;
  /** How much of it nobody can take away, whoever looks; 0 where we do not know. */
  readonly sureMs: number;
  /** Left behind, and perhaps over for longer than we have seen it. */
  readonly untimed: boolean;
}

/**
 * Since when each grant has stood still, on this process' own monotonic clock. The holder counts from
 * before it wrote, we from after we read: whatever the clocks of anybody say, it stops first.
 */
export class Sightings {
  readonly #clock: Clock;
  /** In the order of the last look at each. */
  readonly #byPath = new Map<string, Seen>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** How many paths are remembered. */
  get size(): number {
    return this.#byPath.size;
  }

  /** A new reading, and when it was written: graves that are old enough are taken out of it. */
  read(path: string, ledger: Ledger, written: LeaderTime | null): void {
    const now = this.#clock.now();
    this.#see(path, ledger, now, false);
    const seen = this.#byPath.get(path)?.grants;
    for (const [hash, holding] of Object.entries(ledger.grants)) {
      const sighting = seen?.get(hash);
      const since = leftAt(holding);
      if (sighting === undefined || since === null || written === null) continue;
      // Nobody renews what was left behind, so the leader's clock may say how long it has stood still.
      sighting.since = Math.min(sighting.since, now - elapsedMs(since, written));
    }
  }

  /** What we wrote ourselves; `at` is before it was sent. */
  wrote(path: string, ledger: Ledger, at: number): void {
    this.#see(path, ledger, at, true);
    const seen = this.#byPath.get(path)?.grants;
    for (const [hash, holding] of Object.entries(ledger.grants)) {
      if (leftAt(holding) !== null) seen!.get(hash)!.timed = true;
    }
  }

  /** Who still blocks, as far as we have seen; what was decided since the reading is as of now. */
  judge(path: string, { grants, graves }: Ledger): { grants: Judged[]; ledger: Ledger } {
    const now = this.#clock.now();
    const seen = this.#byPath.get(path)?.grants;
    const judged = Object.entries(grants).map(([hash, holding]): Judged => {
      const known = seen?.get(hash);
      const sighting = known?.state === stateOf(holding) ? known : null;
      const leftMs = holding.ttlMs - (sighting === null ? 0 : now - sighting.since);
      return {
        ...{ hash, holding, leftMs, blocksMs: leftMs + holding.lockDelayMs },
        sureMs: sighting?.isOurs ? Math.max(0, leftMs) : 0,
        untimed: holding.left && sighting?.timed !== true,
      };
    });
    const blocking = judged.filter(({ blocksMs }) => blocksMs > 0);
    const kept = Object.fromEntries(blocking.map(({ hash, holding }) => [hash, holding]));
    return { grants: blocking, ledger: { grants: kept, graves } };
  }

  /** For tests: as if what was seen of this path had been seen so much earlier. */
  age(path: string, ms: number): void {
    for (const sighting of this.#byPath.get(path)?.grants.values() ?? []) sighting.since -= ms;
  }

  #see(path: string, ledger: Ledger, now: number, isOurs: boolean): void {
    const before = this.#byPath.get(path)?.grants;
    const seen = new Map<string, Sighting>();
    const sight = (key: string, state: string) => {
      const known = before?.get(key);
      const sighting = known?.state === state ? known : { state, since: now, isOurs, timed: false };
      seen.set(key, sighting);
      return now - sighting.since;
    };
    for (const [hash, holding] of Object.entries(ledger.grants)) sight(hash, stateOf(holding));
    for (const [hash, ms] of ledger.graves) {
      if (sight(`+${hash}`, "") >= ms) ledger.graves.delete(hash);
    }
    this.#remember(path, seen);
  }

  #remember(path: string, grants: Map<string, Sighting>): void {
    const at = this.#clock.now();
    this.#byPath.delete(path);
    if (grants.size > 0) this.#byPath.set(path, { at, grants });
    // More than one each time, so that they become fewer again.
    for (const [oldest, seen] of this.#byPath) {
      if (this.#byPath.size <= REMEMBERED || seen.at > at - IN_USE_MS) break;
      this.#byPath.delete(oldest);
    }
  }
}

/**
 * What changes with every renewal. A claim that core repeats may be granted a second time after its
 * first grant was over: its beats begin again, and its token is another one.
 */
function stateOf({ token, beat }: Holding): string {
  return `${token} ${beat}`;
}
