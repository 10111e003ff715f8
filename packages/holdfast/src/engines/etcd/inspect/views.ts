import type { ListFilter, ListPage, ResourceView } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import type { Leases } from "../leases/leases.js";
import type { Keys } from "../queue/keys.js";
import { holderView, type Queue, type QueueMember } from "../queue/queue.js";
import type { QueueReader } from "../queue/queue-reader.js";
import { listPage } from "./listing.js";

type RemainingMs = (lease: string) => Promise<number>;

/** Shows locks to people: `inspect` and `list`. */
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
    return view(resource, queue, this.#remainingOf(deadline));
  }

  async list(filter: ListFilter, deadline: number): Promise<ListPage> {
    const remainingOf = this.#remainingOf(deadline);
    return listPage(this.#client, this.#keys, filter, deadline, async (resource, queue) =>
      view(resource, queue ?? (await this.#queueReader.queue(resource, deadline)), remainingOf),
    );
  }

  /**
   * Answers the remaining time of a lease. Many keys are on the same lease, which is asked after
   * once.
   */
  #remainingOf(deadline: number): RemainingMs {
    const left = new Map<string, Promise<number>>();
    return (lease) => {
      if (lease === "0") return Promise.resolve(0);
      const asked =
        left.get(lease) ?? this.#leases.remaining(lease, deadline).then(({ mostMs }) => mostMs);
      left.set(lease, asked);
      return asked;
    };
  }
}

async function view(
  resource: string,
  queue: Queue,
  remainingOf: RemainingMs,
): Promise<ResourceView> {
  const closed = await Promise.all(queue.orphans.map(({ lease }) => remainingOf(lease)));
  return {
    resource,
    holders: await Promise.all(
      queue.holders.map(async (member) => holderView(member, await remainingOf(member.lease))),
    ),
    waiters: queue.waiters.map((member, position) => waiterView(member, position)),
    closedMs: Math.max(0, ...closed),
  };
}

function waiterView(member: QueueMember, position: number) {
  const { mode, label } = holderView(member, 0);
  return { mode, label, position };
}
