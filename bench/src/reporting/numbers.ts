import type { ColumnKind } from "../measuring/suite.js";

/** Numbers as a person reads them: three digits that count, and a unit. */
export function formatNumber(value: number | undefined, kind: ColumnKind): string {
  if (value === undefined || Number.isNaN(value)) return "";
  if (kind === "ms") return duration(value);
  if (kind === "rate") return `${short(value)}/s`;
  if (kind === "times") return `${digits(value)}×`;
  if (kind === "percent") return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} %`;
  if (kind === "part" || kind === "each") return value.toFixed(2);
  if (kind === "bytes") return `${digits(value)} B`;
  return String(Math.round(value));
}

export function short(value: number): string {
  if (value >= 999_500) return `${digits(value / 1e6)}M`;
  return value >= 9_995 ? `${digits(value / 1e3)}k` : digits(value);
}

function duration(ms: number): string {
  if (ms >= 999.5) return `${digits(ms / 1e3)} s`;
  return ms >= 0.9995 ? `${digits(ms)} ms` : `${digits(ms * 1e3)} µs`;
}

function digits(value: number): string {
  if (value === 0) return "0";
  return value >= 99.95 ? value.toFixed(0) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2);
}
