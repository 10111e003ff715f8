// Compares a list of 100,000 names with one of 10,000, on any server.
import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { processorTimeUs } from "@holdfast/servers";
import type { Engine, ListPage } from "../engine.js";
import { now } from "./call.fixture.js";

const FEW = 10_000;
const MANY = 100_000;
const PAGE = 256;
const MOST_PAGES = 100_000;
// A quadratic list costs ten times as much per name. Measured in CPU time, because other programs
// use the machine too.
const MOST_GROWTH = 3;
// A page takes milliseconds. This limit is for one that hangs, on a busy machine.
const LONGEST_MS = 4_000;
const LOOK_AT_HEAP_EVERY = 40;

export interface LongListTarget {
  readonly engine: Engine;
  /** The processes of the servers. */
  readonly pids: readonly number[];
  /** Holds name-<first> to name-<last>. */
  fill(first: number, last: number): Promise<void>;
  readonly mostHeapMb: number;
}

interface Figures {
  readonly usPerName: number;
  readonly heapMb: number;
}

export async function checkLongList(target: LongListTarget): Promise<void> {
  const { fill, mostHeapMb } = target;
  await fill(1, FEW);
  await listed(target, FEW);
  const few = await listed(target, FEW);
  await fill(FEW + 1, MANY);
  const many = await listed(target, MANY);
  const told = `${few.usPerName} us a name among ${FEW}, ${many.usPerName} among ${MANY}`;
  assert.ok(many.usPerName <= few.usPerName * MOST_GROWTH, told);
  assert.ok(many.heapMb <= mostHeapMb, `the heap grows by ${many.heapMb} MB`);
}

async function listed({ engine, pids }: LongListTarget, count: number): Promise<Figures> {
  const seen = new Uint8Array(count + 1);
  const collect = collector();
  collect();
  const before = process.memoryUsage().heapUsed;
  let cursor: string | null = null;
  const workBefore = workUs(pids);
  let [pages, tookMs, longestMs, mostHeap] = [0, 0, 0, 0];
  do {
    const from = performance.now();
    const page: ListPage = await engine.list({ match: "*", cursor, max: PAGE }, now());
    const pageMs = performance.now() - from;
    tookMs += pageMs;
    longestMs = Math.max(longestMs, pageMs);
    for (const { resource } of page.views) seen[Number(resource.slice("name-".length))]!++;
    cursor = page.cursor;
    if (pages % LOOK_AT_HEAP_EVERY === 0 || cursor === null) {
      collect();
      mostHeap = Math.max(mostHeap, process.memoryUsage().heapUsed - before);
    }
    assert.ok(++pages < MOST_PAGES, "the list does not end");
  } while (cursor !== null);
  const workedUs = workUs(pids) - workBefore;
  const others = seen.findIndex((times, i) => times !== (i === 0 ? 0 : 1));
  assert.equal(others, -1, `name-${others} was shown ${seen[others]} times`);
  const figures = {
    usPerName: Math.round(workedUs / count),
    heapMb: Math.round(mostHeap / 1e6),
  };
  console.log(
    `# ${count} names: ${Math.round(tookMs)} ms, ${figures.usPerName} us of work a name, ` +
      `${pages} pages, longest ${Math.round(longestMs)} ms, heap +${figures.heapMb} MB`,
  );
  assert.ok(longestMs < LONGEST_MS, `a page took ${longestMs} ms`);
  return figures;
}

/** CPU time of this process and the servers. */
function workUs(pids: readonly number[]): number {
  const { user, system } = process.cpuUsage();
  return pids.reduce((sum, pid) => sum + processorTimeUs(pid), user + system);
}

/** Garbage does not count as growth. */
function collector(): () => void {
  setFlagsFromString("--expose-gc");
  return runInNewContext("gc") as () => void;
}
