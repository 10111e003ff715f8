import { compileGlob } from "../../../core/acquiring/resource.js";
import type { ListFilter, ListPage, ResourceView } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import { countOf, found, type KeyValue, range } from "../client/requests.js";
import { isOurs, type Keys, markedBy } from "../queue/keys.js";
import { Queue } from "../queue/queue.js";
import { narrowed, type Stretch, widened } from "./stretch.js";

const MOST_KEYS = 2_000;
const MOST_TRIES = 8;

/** What is to be shown of a resource; without a queue, all of it is to be read. */
type View = (resource: string, queue: Queue | null) => Promise<ResourceView>;

interface Page extends Stretch {
  readonly told: readonly KeyValue[];
  /** How many there are on this stretch. */
  readonly count: number;
}

/** The next page. Keys lie in the order of their names, so those of a resource lie together. */
export async function listPage(
  client: EtcdClient,
  keys: Keys,
  { match, cursor, max }: ListFilter,
  deadline: number,
  view: View,
): Promise<ListPage> {
  const begin = cursor === null ? allOf(keys) : (JSON.parse(cursor) as Stretch);
  const page = await read(client, keys, begin, max, deadline);
  const { told, count } = page;
  const { groups, beyond } = grouped(told, keys, max);
  const last = told.at(-1)?.key ?? "";
  const lastOne = keys.resourceOf(last);
  const isMore = count > told.length;
  // The last one's keys may go on beyond the page, and are read by themselves.
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

/** The first keys of a stretch, or of one of the next if there are none. */
async function read(
  client: EtcdClient,
  keys: Keys,
  begin: Stretch,
  max: number,
  deadline: number,
): Promise<Page> {
  // Mostly a resource has one key, and one more tells whether the last one's go on.
  const limit = Math.min(max + 1, MOST_KEYS);
  let stretch = begin;
  for (let tries = 1; ; tries++) {
    const { from, until } = stretch;
    const success = [range({ start: from, end: until }, { limit })];
    const txn = { compare: [], success, failure: [] };
    const answer = await client.txn(txn, { deadline, repeatable: true });
    const page = { from, until, told: found(answer, 0), count: countOf(answer, 0) };
    const next = page.count === 0 ? afterAll(page, keys) : null;
    if (next === null || tries === MOST_TRIES) return page;
    stretch = next;
  }
}

function allOf(keys: Keys): Stretch {
  return { from: keys.all.start, until: keys.all.end };
}

/** Null where there is nothing after it. */
function afterAll({ from, until, count }: Page, keys: Keys): Stretch | null {
  const { until: end } = allOf(keys);
  if (until === end) return null;
  return { from: until, until: widened({ from, until }, count, keys.namesFrom) ?? end };
}

function afterSome({ told, until, count }: Page, from: string, keys: Keys): Stretch {
  const [first, last] = [told[0]!.key, told.at(-1)!.key];
  return { from, until: narrowed(until, { first, last, count }, keys.namesFrom) };
}

/** By resource, up to so many; beyond is the first key of the next one. */
function grouped(told: readonly KeyValue[], keys: Keys, max: number) {
  const groups = new Map<string, KeyValue[]>();
  for (const kv of told) {
    const resource = keys.resourceOf(kv.key);
    if (resource === null || !isLock(kv)) continue;
    const group = groups.get(resource);
    if (group !== undefined) group.push(kv);
    else if (groups.size === max) return { groups, beyond: kv.key };
    else groups.set(resource, [kv]);
  }
  return { groups, beyond: null };
}

/** Ours, or what `etcdctl lock` makes: a key that is named by its lease. Others' data may lie about. */
function isLock({ key, lease }: KeyValue): boolean {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return isOurs(key) || markedBy(key) !== null || BigInt(lease).toString(16) === name;
}

function isBusy({ holders, waiters, closedMs }: ResourceView): boolean {
  return holders.length + waiters.length > 0 || closedMs > 0;
}
