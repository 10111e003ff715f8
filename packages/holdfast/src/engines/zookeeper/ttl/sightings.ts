import { systemClock } from "../../../clock.js";
import type { Holding, Ledger } from "./record.js";

const REMEMBERED = 10_000;

interface Sighting {
  readonly beat: number;
  since: number;
}

/** A grant as this process judges it, by how long it has seen it unchanged. */
export interface Judged {
  readonly hash: string;
  readonly holding: Holding;
  /** More than 0 while it lives. */
  readonly leftMs: number;
  /** Until its lock-delay is over, too. */
  readonly blocksMs: number;
}

/**
 * Since when each grant has stood still, on this process' own monotonic clock. The holder counts from
 * before it wrote, we from after we read: whatever the clocks of anybody say, it stops first.
 */
export class Sightings {
  readonly #byPath = new Map<string, Map<string, Sighting>>();

  /** A new reading: graves that are old enough are taken out of it. */
  see(path: string, ledger: Ledger): void {
    const now = systemClock.now();
    const before = this.#byPath.get(path);
    const seen = new Map<string, Sighting>();
    const sight = (key: string, beat: number) => {
      const known = before?.get(key);
      const sighting = known?.beat === beat ? known : { beat, since: now };
      seen.set(key, sighting);
      return now - sighting.since;
    };
    for (const [hash, { beat }] of Object.entries(ledger.grants)) sight(hash, beat);
    for (const [hash, ms] of ledger.graves) {
      if (sight(`+${hash}`, 0) >= ms) ledger.graves.delete(hash);
    }
    this.#remember(path, seen);
  }

  /** Who still blocks, as far as we have seen; what was decided since the reading is as of now. */
  judge(path: string, { grants, graves }: Ledger): { grants: Judged[]; ledger: Ledger } {
    const now = systemClock.now();
    const seen = this.#byPath.get(path);
    const judged = Object.entries(grants).map(([hash, holding]): Judged => {
      const sighting = seen?.get(hash);
      const stillMs = sighting?.beat === holding.beat ? now - sighting.since : 0;
      const leftMs = holding.ttlMs - stillMs;
      return { hash, holding, leftMs, blocksMs: leftMs + holding.lockDelayMs };
    });
    const blocking = judged.filter(({ blocksMs }) => blocksMs > 0);
    const kept = Object.fromEntries(blocking.map(({ hash, holding }) => [hash, holding]));
    return { grants: blocking, ledger: { grants: kept, graves } };
  }

  /** For tests: as if what was seen of this path had been seen so much earlier. */
  age(path: string, ms: number): void {
    for (const sighting of this.#byPath.get(path)?.values() ?? []) sighting.since -= ms;
  }

  #remember(path: string, seen: Map<string, Sighting>): void {
    this.#byPath.delete(path);
    if (seen.size > 0) this.#byPath.set(path, seen);
    if (this.#byPath.size <= REMEMBERED) return;
    const [oldest] = this.#byPath.keys();
    this.#byPath.delete(oldest!);
  }
}
