import { compileGlob } from "../../../core/acquiring/resource.js";
import type { ListFilter, ListPage, ResourceView } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { countOf, found, type KeyValue, range } from "../client/requests.js";
import { isOurs, type Keys, markedBy } from "../queue/keys.js";
import { Queue } from "../queue/queue.js";
import { narrowed, type ScanRange, widened } from "./scan-range.js";

const MOST_KEYS = 2_000;
const MOST_TRIES = 8;

/**
 * Shows a resource with this queue. With null the queue was read only in part, so it is read again.
 */
type View = (resource: string, queue: Queue | null) => Promise<ResourceView>;

interface Page extends ScanRange {
  /** The first keys of the range. */
  readonly keyValues: readonly KeyValue[];
  /** How many keys the range has. */
  readonly count: number;
}

/**
 * The next page. Keys are in the order of their names, so the keys of one resource are together.
 */
export async function listPage(
  client: EtcdClient,
  keys: Keys,
  { match, cursor, max }: ListFilter,
  deadline: number,
  view: View,
): Promise<ListPage> {
  const begin = cursor === null ? allOf(keys) : (JSON.parse(cursor) as ScanRange);
  const page = await read(client, keys, begin, max, deadline);
  const { keyValues, count } = page;
  const { groups, beyond } = grouped(keyValues, keys, max);
  const last = keyValues.at(-1)?.key ?? "";
  const lastOne = keys.resourceOf(last);
  const isMore = count > keyValues.length;
  // The last resource may have more keys beyond the page, so its queue is read on its own.
  const cut = isMore && beyond === null && lastOne !== null && groups.has(lastOne) ? lastOne : null;
  const glob = compileGlob(match);
  const views = [...groups]
    .filter(([resource]) => glob.test(resource))
    .map(([resource, kvs]) => view(resource, resource === cut ? null : new Queue(kvs)));
  const rest = cut === null ? `${last}\0` : keys.rangeOf(cut).end;
  const isThrough = beyond === null && !isMore;
  const next = isThrough ? afterAll(page, keys) : afterSome(page, beyond ?? rest, keys);
  return {
    views: (await Promise.all(views)).filter(isBusy),
    cursor: next === null ? null : JSON.stringify(next),
  };
}

/** The first keys of a range. If it has none, the first keys of one of the next ranges. */
async function read(
  client: EtcdClient,
  keys: Keys,
  begin: ScanRange,
  max: number,
  deadline: number,
): Promise<Page> {
  // Most resources have one key. One key more shows whether the last resource has more keys.
  const limit = Math.min(max + 1, MOST_KEYS);
  let scanRange = begin;
  for (let tries = 1; ; tries++) {
    const { from, until } = scanRange;
    const success = [range({ start: from, end: until }, { limit })];
    const txn = { compare: [], success, failure: [] };
    const answer = await client.txn(txn, { deadline, repeatable: true });
    const page = { from, until, keyValues: found(answer, 0), count: countOf(answer, 0) };
    const next = page.count === 0 ? afterAll(page, keys) : null;
    if (next === null || tries === MOST_TRIES) return page;
    scanRange = next;
  }
}

function allOf(keys: Keys): ScanRange {
  return { from: keys.all.start, until: keys.all.end };
}

/** The range after this page; null if there is none. */
function afterAll({ from, until, count }: Page, keys: Keys): ScanRange | null {
  const { until: end } = allOf(keys);
  if (until === end) return null;
  return { from: until, until: widened({ from, until }, count, keys.namesFrom) ?? end };
}

/** The rest of the range of this page, which has keys that were not returned. */
function afterSome({ keyValues, until, count }: Page, from: string, keys: Keys): ScanRange {
  const [first, last] = [keyValues[0]!.key, keyValues.at(-1)!.key];
  return { from, until: narrowed(until, { first, last, count }, keys.namesFrom) };
}

/** The keys of up to `max` resources. `beyond` is the first key of the next resource. */
function grouped(keyValues: readonly KeyValue[], keys: Keys, max: number) {
  const groups = new Map<string, KeyValue[]>();
  for (const kv of keyValues) {
    const resource = keys.resourceOf(kv.key);
    if (resource === null || !isLock(kv)) continue;
    const group = groups.get(resource);
    if (group !== undefined) group.push(kv);
    else if (groups.size === max) return { groups, beyond: kv.key };
    else groups.set(resource, [kv]);
  }
  return { groups, beyond: null };
}

/**
 * A key of ours, or of `etcdctl lock`, which names keys by their lease. Other keys may be any data.
 */
function isLock({ key, lease }: KeyValue): boolean {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return isOurs(key) || markedBy(key) !== null || BigInt(lease).toString(16) === name;
}

function isBusy({ holders, waiters, closedMs }: ResourceView): boolean {
  return holders.length + waiters.length > 0 || closedMs > 0;
}
