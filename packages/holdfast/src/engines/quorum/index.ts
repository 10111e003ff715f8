import { randomBytes, randomInt } from "node:crypto";
import { refuseForeign } from "../../core/input/known-options.js";
import { systemClock } from "../../core/runtime/clock.js";
import type { Engine } from "../../engine.js";
import { kindOf, UsageError } from "../../errors.js";
import type { EngineUrl } from "../../url.js";
import { type Address, addressOf, showAddress } from "../redis/clients/address.js";
import { adaptClient, type RedisConnection } from "../redis/clients/connection.js";
import { QuorumEngine } from "./engine.js";
import { certifyNewQuorum, waitOutQuarantines } from "./init.js";
import { openConnections } from "./nodes/lazy-connection.js";
import { RedisNode } from "./nodes/redis-node.js";
import { ReleaseNotifications } from "./nodes/release-notifications.js";
import {
  OPTIONS,
  type QuorumEngineOptions,
  type QuorumMember,
  type ResolvedQuorum,
  resolveQuorum,
  settingsFromUrl,
} from "./options.js";

export type { QuorumEngineTraits } from "./engine.js";
export { QUORUM_DEFAULTS, type QuorumEngineOptions, type QuorumMember } from "./options.js";

/** Redlock with a fencing token, through clients that you made for N independent Redis servers. */
export function quorumEngine(options: QuorumEngineOptions): Engine {
  refuseForeign(options, OPTIONS, "quorumEngine", { option: "nodes" });
  const { nodes, ...settings } = options;
  const terms = resolveQuorum(namesOf(nodes), settings);
  return build(
    terms,
    nodes.map(({ client }) => adaptClient(client)),
  );
}

/**
 * Certifies the nodes of a new quorum, so that it starts without a quarantine. Harmless where the
 * quorum is already in use: a node in quarantine beside certified nodes stays in quarantine.
 */
export async function init(options: QuorumEngineOptions): Promise<void> {
  refuseForeign(options, OPTIONS, "init", { option: "nodes" });
  const { nodes, ...settings } = options;
  const terms = resolveQuorum(namesOf(nodes), settings);
  const connections = nodes.map(({ client }) => adaptClient(client));
  await certifyNewQuorum(membersOf(terms, connections, null), terms, mintNonce);
}

export async function quorumFromUrl(url: EngineUrl): Promise<Engine> {
  const { addresses, terms } = readUrl(url);
  const engine = build(terms, await openConnections(addresses, terms.writeQuorum));
  await engine.open();
  return engine;
}

/** The explicit step of an operator: `holdfast init`, with or without `--wait`. */
export async function initFromUrl(url: EngineUrl, wait: boolean): Promise<void> {
  const { addresses, terms } = readUrl(url);
  const connections = await openConnections(addresses, addresses.length);
  try {
    const nodes = membersOf(terms, connections, null);
    await certifyNewQuorum(nodes, terms, mintNonce);
    if (wait) await waitOutQuarantines(nodes, terms, mintNonce);
  } finally {
    for (const connection of connections) connection.close();
  }
}

function readUrl(url: EngineUrl): { addresses: Address[]; terms: ResolvedQuorum } {
  if (url.hosts.length === 0) {
    throw new UsageError('redlock:// takes hosts, like "redlock://10.0.0.1,10.0.0.2,10.0.0.3"');
  }
  const settings = settingsFromUrl(url);
  const addresses = url.hosts.map((host) => addressOf({ ...url, hosts: [host] }));
  return { addresses, terms: resolveQuorum(addresses.map(showAddress), settings) };
}

function build(terms: ResolvedQuorum, connections: readonly RedisConnection[]): QuorumEngine {
  const notifications = new ReleaseNotifications(systemClock, random);
  const nodes = membersOf(terms, connections, notifications);
  return new QuorumEngine({ nodes, terms, notifications, clock: systemClock, random, mintNonce });
}

function membersOf(
  terms: ResolvedQuorum,
  connections: readonly RedisConnection[],
  notifications: ReleaseNotifications | null,
): RedisNode[] {
  return connections.map(
    (connection, i) =>
      new RedisNode(terms.names[i]!, connection, terms, (resource, ticket) =>
        notifications?.hear(i, resource, ticket),
      ),
  );
}

function namesOf(nodes: QuorumEngineOptions["nodes"]): string[] {
  const wants = "nodes is a list of { name, client }";
  if (!Array.isArray(nodes)) throw new UsageError(`${wants}, got ${kindOf(nodes)}`);
  return nodes.map((node: Partial<QuorumMember> | null | undefined) => {
    if (typeof node?.name === "string") return node.name;
    throw new UsageError(`${wants}, with names like "10.0.0.1:6379", and one is ${kindOf(node)}`);
  });
}

function random(): number {
  return randomInt(2 ** 32) / 2 ** 32;
}

function mintNonce(): string {
  return randomBytes(16).toString("hex");
}
