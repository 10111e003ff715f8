import { formatNumber } from "./numbers.js";
import { headline, type Table } from "./report.js";

const WIDTH = 820;
const NAMES = 270;
const VALUES = 90;
const BAR = 22;
const STEP = 32;
const TOP = 64;
const BOTTOM = 28;
// Beyond this spread, the small bars of a linear chart would look the same.
const LOG_SPREAD = 30;

// One set of colours that is readable on white and on black, because a picture cannot know its
// background.
const STYLE = `
  text { font: 13px system-ui, sans-serif; fill: #717a84; }
  .title { font-size: 16px; font-weight: 600; }
  .small { font-size: 12px; }
  .grid { stroke: #8b949e; stroke-opacity: 0.35; }
  .ours { fill: #2f81d8; }
  .theirs { fill: #8b949e; }`;

/** Draws one bar a row, by the headline column, on a transparent background. */
export function chart(table: Table): string {
  const column = table.columns[0]!;
  const bars = table.rows.flatMap((row) => {
    const value = headline(table, row);
    return value === null || Number.isNaN(value) ? [] : [{ row, value }];
  });
  const values = bars.map(({ value }) => value).filter((value) => value > 0);
  const scale = scaleFor(Math.min(...values), Math.max(...values));
  const height = TOP + STEP * bars.length + BOTTOM;
  const order = table.better === "more" ? "more is better" : "less is better";
  const note = `${column.title}, ${order}${scale.ticks.length > 0 ? ", logarithmic scale" : ""}`;
  const grid = scale.ticks.map((tick) => {
    const x = round(NAMES + scale.x(tick));
    const label = escapeText(formatNumber(tick, column.kind));
    return [
      `<line class="grid" x1="${x}" x2="${x}" y1="${TOP - 8}" y2="${height - BOTTOM}"/>`,
      `<text class="small" x="${x}" y="${height - 10}" text-anchor="middle">${label}</text>`,
    ].join("\n");
  });
  const drawn = bars.map(({ row, value }, i) => {
    const y = TOP + STEP * i;
    const width = round(Math.max(1, scale.x(value)));
    const base = y + BAR / 2 + 5;
    return [
      `<text x="${NAMES - 10}" y="${base}" text-anchor="end">${escapeText(row.name)}</text>`,
      `<rect class="${row.ours ? "ours" : "theirs"}" x="${NAMES}" y="${y}" width="${width}" height="${BAR}" rx="3"/>`,
      `<text x="${NAMES + width + 8}" y="${base}">${escapeText(formatNumber(value, column.kind))}</text>`,
    ].join("\n");
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escapeText(`${table.title}: ${note}`)}</title>`,
    `<style>${STYLE}\n</style>`,
    `<text class="title" x="10" y="24">${escapeText(table.title)}</text>`,
    `<text class="small" x="10" y="43">${escapeText(note)}</text>`,
    ...grid,
    ...drawn,
    "</svg>",
  ].join("\n")}\n`;
}

/**
 * Linear from zero; where the values lie far apart, logarithmic with a line at each power of ten.
 */
function scaleFor(least: number, most: number): { x(value: number): number; ticks: number[] } {
  const room = WIDTH - NAMES - VALUES;
  if (!(most / least > LOG_SPREAD)) return { x: (value) => (room * value) / most, ticks: [] };
  const from = Math.floor(Math.log10(least) - 0.3);
  const decades = Math.log10(most) - from;
  const ticks = Array.from({ length: Math.floor(decades) + 1 }, (_, i) => 10 ** (from + i));
  return { x: (value) => (room * (Math.log10(value) - from)) / decades, ticks };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
