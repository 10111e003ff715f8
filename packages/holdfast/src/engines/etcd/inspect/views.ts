import type { ListFilter, ListPage, ResourceView } from "../../../engine.js";
import type { EtcdClient } from "../client/client.js";
import type { Leases } from "../leases/leases.js";
import type { Keys } from "../queue/keys.js";
import { holderView, type Line, type Member } from "../queue/queue.js";
import type { Readings } from "../queue/queue-reader.js";
import { listPage } from "./listing.js";

type LeftOf = (lease: string) => Promise<number>;

/** What people see of the locks. */
export class Views {
  readonly #client: EtcdClient;
  readonly #keys: Keys;
  readonly #readings: Readings;
  readonly #leases: Leases;

  constructor(client: EtcdClient, keys: Keys, readings: Readings, leases: Leases) {
    this.#client = client;
    this.#keys = keys;
    this.#readings = readings;
    this.#leases = leases;
  }

  async inspect(resource: string, deadline: number): Promise<ResourceView> {
    const line = await this.#readings.line(resource, deadline);
    return view(resource, line, this.#leftOf(deadline));
  }

  async list(filter: ListFilter, deadline: number): Promise<ListPage> {
    const leftOf = this.#leftOf(deadline);
    return listPage(this.#client, this.#keys, filter, deadline, async (resource, line) =>
      view(resource, line ?? (await this.#readings.line(resource, deadline)), leftOf),
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

async function view(resource: string, line: Line, leftOf: LeftOf): Promise<ResourceView> {
  const closed = await Promise.all(line.orphans.map(({ lease }) => leftOf(lease)));
  return {
    resource,
    holders: await Promise.all(
      line.holders.map(async (member) => holderView(member, await leftOf(member.lease))),
    ),
    waiters: line.waiters.map((member, position) => waiterView(member, position)),
    closedMs: Math.max(0, ...closed),
  };
}

function waiterView(member: Member, position: number) {
  const { mode, label } = holderView(member, 0);
  return { mode, label, position };
}
