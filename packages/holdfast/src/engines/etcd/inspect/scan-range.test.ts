import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { narrowed, type ScanRange, widened } from "./scan-range.js";

const PREFIX = "holdfast/";
const END = "holdfast0";
const COUNT = 20_000;
const PAGE = 256;

const KINDS: Readonly<Record<string, (i: number) => string>> = {
  numbers: (i) => `name-${i}`,
  "numbers with zeros before": (i) => `invoice:${String(i).padStart(8, "0")}`,
  hashes: (i) => createHash("sha256").update(String(i)).digest("hex"),
  tenants: (i) => `tenant-${i % 37}:order:${i}`,
  "hosts and ports": (i) => `10.${i % 256}.${i >> 8}.1:${i % 9}`,
  "a large alphabet": (i) => String.fromCodePoint(0x4e00 + ((i * 7919) % 20_000)) + i,
  "a few of another kind": (i) => (i % 1_000 === 0 ? `z${i}` : `a${i}`),
};

for (const [kind, nameOf] of Object.entries(KINDS)) {
  test(`scan ranges visit each key once, and etcd walks few keys more: ${kind}`, () => {
    const { found, walked, reads } = walk(nameOf);
    assert.equal(found, COUNT);
    assert.ok(walked <= 6 * COUNT, `${walked / COUNT} a key`);
    // Most reads of an empty range walk nothing: they follow a long common beginning of many names.
    assert.ok(reads <= (16 * COUNT) / PAGE, `${reads} reads`);
  });
}

/** Reads pages as a list does, from keys in etcd's order. */
function walk(nameOf: (i: number) => string) {
  const keys = Array.from({ length: COUNT }, (_, i) => Buffer.from(`${PREFIX}${nameOf(i)}/h`));
  keys.sort(Buffer.compare);
  let scanRange: ScanRange | null = { from: PREFIX, until: END };
  let [visited, walked, reads] = [0, 0, 0];
  while (scanRange !== null) {
    const { from, until }: ScanRange = scanRange;
    const at = indexOf(keys, from);
    assert.equal(at, visited, "a range begins where the last page ended");
    const count = Math.max(0, indexOf(keys, until) - at);
    const page = keys.slice(at, at + Math.min(count, PAGE));
    [visited, walked, reads] = [at + page.length, walked + count, reads + 1];
    if (count > page.length) {
      const [first, last] = [String(page[0]), String(page.at(-1))];
      const end = narrowed(until, { first, last, count }, PREFIX.length);
      scanRange = { from: `${last}\0`, until: end };
    } else if (until === END) scanRange = null;
    else {
      scanRange = { from: until, until: widened({ from, until }, count, PREFIX.length) ?? END };
    }
  }
  return { found: visited, walked, reads };
}

/** How many keys come before this one. */
function indexOf(keys: readonly Buffer[], key: string): number {
  const bytes = Buffer.from(key);
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (Buffer.compare(keys[middle]!, bytes) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
