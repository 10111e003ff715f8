import { compileGlob } from "../../core/acquiring/resource.js";
import type { ListFilter, ListPage, ResourceView } from "../../engine.js";
import type { EtcdClient } from "./client/client.js";
import { countOf, found, type KeyValue, range } from "./client/requests.js";
import type { Leases } from "./leases/leases.js";
import { isOurs, type Keys, markedBy } from "./queue/keys.js";
import { holderView, type Member, Queue } from "./queue/queue.js";
import type { QueueReader } from "./queue/queue-reader.js";

// A resource has a few keys, mostly one.
const KEYS_PER_VIEW = 4;
const MOST_KEYS = 2_000;

/** What people see of the locks. */
export class Views {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #queueReader: QueueReader;
  readonly #leases: Leases;

  constructor(client: EtcdClient, keys: Keys, queueReader: QueueReader, leases: Leases) {
    this.#client = client;
    this.#keys = keys;
    this.#queueReader = queueReader;
    this.#leases = leases;
  }

  async inspect(resource: string, deadline: number): Promise<ResourceView> {
    return this.#view(resource, await this.#queueReader.queue(resource, deadline), deadline);
  }

  /** Keys lie in the order of their names, so those of a resource lie together. */
  async list({ match, cursor, max }: ListFilter, deadline: number): Promise<ListPage> {
    const { start, end } = this.#keys.all;
    const limit = Math.min(max * KEYS_PER_VIEW + 1, MOST_KEYS);
    const success = [range({ start: cursor ?? start, end }, { limit })];
    const txn = { compare: [], success, failure: [] };
    const page = await this.#client.txn(txn, { deadline, repeatable: true });
    const keys = found(page, 0);
    const isMore = countOf(page, 0) > keys.length;
    const groups = new Map<string, KeyValue[]>();
    let beyond: string | null = null;
    for (const kv of keys) {
      const resource = this.#keys.resourceOf(kv.key);
      if (resource === null || !isLock(kv)) continue;
      if (groups.size === max && !groups.has(resource)) {
        beyond = kv.key;
        break;
      }
      groups.set(resource, [...(groups.get(resource) ?? []), kv]);
    }
    const lastKey = keys.at(-1)?.key ?? "";
    const last = this.#keys.resourceOf(lastKey);
    // The last one's keys may go on beyond the page, and are read by themselves.
    const cut = isMore && beyond === null && last !== null && groups.has(last);
    const rest = cut ? this.#keys.rangeOf(last).end : `${lastKey}\0`;
    const glob = compileGlob(match);
    const views = [...groups]
      .filter(([resource]) => glob.test(resource))
      .map(([resource, kvs]) =>
        cut && resource === last
          ? this.inspect(resource, deadline)
          : this.#view(resource, new Queue(kvs), deadline),
      );
    return {
      views: (await Promise.all(views)).filter(isBusy),
      cursor: beyond ?? (isMore ? rest : null),
    };
  }

  async #view(resource: string, queue: Queue, deadline: number): Promise<ResourceView> {
    const left = new Map<string, Promise<number>>();
    const leftOf = (lease: string): Promise<number> => {
      if (lease === "0") return Promise.resolve(0);
      const asked =
        left.get(lease) ?? this.#leases.left(lease, deadline).then(({ mostMs }) => mostMs);
      left.set(lease, asked);
      return asked;
    };
    const closed = await Promise.all(queue.orphans.map(({ lease }) => leftOf(lease)));
    return {
      resource,
      holders: await Promise.all(
        queue.holders.map(async (member) => holderView(member, await leftOf(member.lease))),
      ),
      waiters: queue.waiters.map((member, position) => waiterView(member, position)),
      closedMs: Math.max(0, ...closed),
    };
  }
}

function waiterView(member: Member, position: number) {
  const { mode, label } = holderView(member, 0);
  return { mode, label, position };
}

/** Ours, or what `etcdctl lock` makes: a key that is named by its lease. Others' data may lie about. */
function isLock({ key, lease }: KeyValue): boolean {
  const name = key.slice(key.lastIndexOf("/") + 1);
  return isOurs(key) || markedBy(key) !== null || BigInt(lease).toString(16) === name;
}

function isBusy({ holders, waiters, closedMs }: ResourceView): boolean {
  return holders.length + waiters.length > 0 || closedMs > 0;
}
