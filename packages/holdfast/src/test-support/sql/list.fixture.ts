// The cost of a list over many names, for any SQL database.
import assert from "node:assert/strict";
import type { Engine } from "../../engine.js";
import type { Locks } from "../../locks.js";
import { now } from "../call.fixture.js";

const PAGE = 256;

export interface ListServer {
  readonly locks: Locks;
  readonly engine: Engine;
  /** Creates resources that are held for a day, with names from prefix + 1000000 on. */
  plant(prefix: string, count: number): Promise<void>;
  /** Rows that the engine's sessions have read so far. */
  rowsRead(): Promise<number>;
  /** The number of row locks and of writing transactions at this moment. */
  locked(): Promise<number>;
}

/** A list with a literal prefix reads the names that have it, and no other. */
export async function checkPrefix(server: ListServer): Promise<void> {
  await server.plant("bulk:", 3_000);
  await server.plant("bulk?x", 1);
  const names = async (match: string) => {
    const found: string[] = [];
    for await (const { resource } of server.locks.list({ match })) found.push(resource);
    return found;
  };
  await names("bulk:1000007");
  const before = await server.rowsRead();
  assert.deepEqual(await names("bulk:100299*"), [
    ...Array.from({ length: 10 }, (_, i) => `bulk:100299${i}`),
  ]);
  const rows = (await server.rowsRead()) - before;
  // A page reads as many names as fit on it, and inspects those that match. A server that counts
  // reads of its own tables counts a few hundred more.
  assert.ok(rows < 1_500, `${rows} rows were read for ten names`);
  assert.deepEqual(await names("bulk:1000007"), ["bulk:1000007"]);
  assert.deepEqual(await names("bulk:?00299?"), [
    ...Array.from({ length: 10 }, (_, i) => `bulk:100299${i}`),
  ]);
  assert.deepEqual(await names("nobody*"), []);
  assert.deepEqual(await names("bulk?x*"), ["bulk?x1000000"]);
  assert.equal((await names("bulk:*")).length, 3_000, "over several pages");
}

/**
 * A list over very many names: the last page takes as long as the first, memory does not grow, and
 * nothing is locked.
 */
export async function checkMany(server: ListServer, count: number): Promise<void> {
  await server.plant("many:", count);
  const took: number[] = [];
  let [cursor, seen, locked]: [string | null, number, number] = [null, 0, 0];
  const heap: number[] = [];
  do {
    const from = performance.now();
    const asked = server.engine.list({ match: "many:*", cursor, max: PAGE }, now());
    if (took.length % 20 === 0) locked = Math.max(locked, await server.locked());
    const page = await asked;
    took.push(performance.now() - from);
    if (took.length % 20 === 1) {
      globalThis.gc?.();
      heap.push(process.memoryUsage().heapUsed);
    }
    seen += page.views.length;
    cursor = page.cursor;
  } while (cursor !== null);
  assert.equal(seen, count);
  assert.equal(locked, 0, "a list locks rows");
  const tenth = Math.floor(took.length / 10);
  const [first, last] = [median(took.slice(0, tenth)), median(took.slice(-tenth))];
  const sorted = [...took].sort((a, b) => a - b);
  console.log(
    `${count} names in ${Math.round(took.reduce((a, b) => a + b, 0))} ms: a page took`,
    `${first.toFixed(1)} ms at first, ${last.toFixed(1)} ms at last, p99`,
    `${sorted[Math.floor(sorted.length * 0.99)]!.toFixed(1)} ms;`,
    `heap ${Math.round(heap[1]! / 1e6)} to ${Math.round(heap.at(-1)! / 1e6)} MB`,
  );
  assert.ok(last < 4 * first + 20, `a page took ${first} ms at first and ${last} ms at last`);
  assert.ok(heap.at(-1)! < heap[1]! + 30e6, `the heap grew from ${heap[1]} to ${heap.at(-1)}`);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}
