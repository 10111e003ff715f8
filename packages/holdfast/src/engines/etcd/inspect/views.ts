import type { ListFilter, ListPage, ResourceView } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import type { Leases } from "../leases/leases.js";
import type { Keys } from "../queue/keys.js";
import { holderView, type Member, type Queue } from "../queue/queue.js";
import type { QueueReader } from "../queue/queue-reader.js";
import { listPage } from "./listing.js";

type LeftOf = (lease: string) => Promise<number>;

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
    const queue = await this.#queueReader.queue(resource, deadline);
    return view(resource, queue, this.#leftOf(deadline));
  }

  async list(filter: ListFilter, deadline: number): Promise<ListPage> {
    const leftOf = this.#leftOf(deadline);
    return listPage(this.#client, this.#keys, filter, deadline, async (resource, queue) =>
      view(resource, queue ?? (await this.#queueReader.queue(resource, deadline)), leftOf),
    );
  }

  /** What a lease has left. Many hang on the same one, and it is asked for once. */
  #leftOf(deadline: number): LeftOf {
    const left = new Map<string, Promise<number>>();
    return (lease) => {
      if (lease === "0") return Promise.resolve(0);
      const asked =
        left.get(lease) ?? this.#leases.left(lease, deadline).then(({ mostMs }) => mostMs);
      left.set(lease, asked);
      return asked;
    };
  }
}

async function view(resource: string, queue: Queue, leftOf: LeftOf): Promise<ResourceView> {
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

function waiterView(member: Member, position: number) {
  const { mode, label } = holderView(member, 0);
  return { mode, label, position };
}
