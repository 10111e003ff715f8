import { UsageError } from "holdfast";

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** "500ms", "10s", "5m", "1h". A bare number is refused: ten of what? */
export function parseDuration(option: string, text: string): number {
  const [, digits, unit = ""] = /^(\d{1,12})(ms|s|m|h)$/.exec(text) ?? [];
  const ms = Number(digits) * (UNIT_MS[unit] ?? Number.NaN);
  if (Number.isSafeInteger(ms)) return ms;
  const meant = /^\d+$/.test(text) ? `, perhaps ${text}s or ${text}ms` : "";
  throw new UsageError(
    `${option} is ${JSON.stringify(text)}; ` +
      `it must be a whole number with a unit, like 500ms, 10s, 5m or 1h${meant}`,
  );
}

/** For people: "0.8 s", "12 s", "3 min 5 s", "2 h 10 min". */
export function showDuration(ms: number): string {
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
