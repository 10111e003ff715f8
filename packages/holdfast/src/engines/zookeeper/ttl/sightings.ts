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

  /** What a reading found; the ledger without what is over. */
  judge(path: string, ledger: Ledger): { grants: Judged[]; ledger: Ledger } {
    const now = systemClock.now();
    const before = this.#byPath.get(path);
    const seen = new Map<string, Sighting>();
    const sight = (key: string, beat: number) => {
      const known = before?.get(key);
      const sighting = known?.beat === beat ? known : { beat, since: now };
      seen.set(key, sighting);
      return now - sighting.since;
    };
    const grants: Judged[] = [];
    for (const [hash, holding] of Object.entries(ledger.grants)) {
      const stillMs = sight(hash, holding.beat);
      const leftMs = holding.ttlMs - stillMs;
      grants.push({ hash, holding, leftMs, blocksMs: leftMs + holding.lockDelayMs });
    }
    const graves = Object.entries(ledger.graves).filter(([hash, ms]) => sight(`+${hash}`, 0) < ms);
    this.#remember(path, seen);
    const blocking = grants.filter(({ blocksMs }) => blocksMs > 0);
    const kept = Object.fromEntries(blocking.map(({ hash, holding }) => [hash, holding]));
    return { grants: blocking, ledger: { grants: kept, graves: Object.fromEntries(graves) } };
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
