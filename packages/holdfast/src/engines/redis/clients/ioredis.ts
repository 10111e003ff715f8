import { UsageError } from "../../../errors.js";
import { textIn } from "../protocol/shape.js";
import { slotOf, tagOf } from "../protocol/slots.js";
import { StalledCalls } from "../sending/stalled-calls.js";
import { WHICH_CONNECTION, waitReplicas } from "../sending/wait-replicas.js";
import type { NodeListener, RedisConnection, ScriptRef, Subscription } from "./connection.js";
import { scanNodes } from "./scan.js";

interface Commands {
  evalsha(sha: string, keyCount: number, ...rest: string[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...rest: string[]): Promise<unknown>;
  call(command: string, ...args: string[]): Promise<unknown>;
}

/** The part of an ioredis Redis that this engine needs, with Sentinels or without. */
export interface IoRedisClient extends Commands {
  readonly options: {
    readonly keyPrefix?: string | undefined;
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly sentinels?: readonly object[] | null | undefined;
  };
  readonly status: string;
  duplicate(override?: object): IoRedisClient & IoRedisSubscriber;
  on(event: "close", listener: () => void): unknown;
  off(event: "close", listener: () => void): unknown;
  disconnect(reconnect?: boolean): void;
}

/** The part of an ioredis Cluster that this engine needs. */
export interface IoRedisClusterClient extends Commands {
  readonly isCluster: boolean;
  readonly options: {
    readonly keyPrefix?: string | undefined;
    readonly redisOptions?: { readonly keyPrefix?: string | undefined } | undefined;
  };
  /** For each slot the addresses that serve it, the primary's first. */
  readonly slots: readonly (readonly string[])[];
  nodes(role: "master" | "all"): readonly IoRedisClient[];
  on(event: "+node", listener: (node: IoRedisClient & Socketed) => void): unknown;
  off(event: "+node", listener: (node: IoRedisClient & Socketed) => void): unknown;
  refreshSlotsCache?(): void;
  duplicate(nodes?: never[], override?: object): IoRedisClusterClient & IoRedisSubscriber;
  disconnect(): void;
}

export interface IoRedisSubscriber {
  readonly status: string;
  subscribe(...channels: string[]): Promise<unknown>;
  ssubscribe(...channels: string[]): Promise<unknown>;
  on(event: "message" | "smessage", listener: (channel: string, message: string) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "connect" | "ready" | "end", listener: () => void): unknown;
  on(event: "+node", listener: (node: Socketed) => void): unknown;
  once(event: "connect", listener: () => void): unknown;
  readonly stream?: { unref(): unknown };
  disconnect(reconnect?: boolean): void;
}

interface Socketed {
  on(event: "connect", listener: () => void): unknown;
  readonly stream?: { unref(): unknown };
}

// Options of the connections that we open. The client must not give up by itself: the core has its
// own deadline. Unanswered commands are sent again, because ioredis would otherwise leave them
// without an answer. failoverDetector is off, because it may leave listeners behind; with Sentinels
// our connections follow the user's client instead.
const OWN = {
  lazyConnect: false,
  maxRetriesPerRequest: null,
  autoResendUnfulfilledCommands: true,
  failoverDetector: false,
};

export function adaptIoRedis(client: IoRedisClient | IoRedisClusterClient): RedisConnection {
  refuseKeyPrefix(client.options);
  return "isCluster" in client && client.isCluster
    ? adaptCluster(client)
    : adaptSingle(client as IoRedisClient);
}

/**
 * ioredis puts a keyPrefix before some names but not all: locks would be neither listed nor pushed.
 */
function refuseKeyPrefix(options: IoRedisClusterClient["options"]): void {
  const prefix = options?.keyPrefix || options?.redisOptions?.keyPrefix;
  if (!prefix) return;
  throw new UsageError(
    `the client has keyPrefix ${JSON.stringify(prefix)}; use a client without one, ` +
      "and give the engine a prefix instead",
  );
}

function adaptSingle(client: IoRedisClient): RedisConnection {
  let waitClient: (IoRedisClient & IoRedisSubscriber) | null = null;
  const follow = followers(client);
  // Whenever a connection is lost, ioredis sends unanswered commands again.
  let [losses, waitLosses] = [0, 0];
  const onLoss = () => void losses++;
  client.on("close", onLoss);
  return {
    connectionId: (_, waits) => (waits ? waitLosses : losses),
    runScript: (script, keys, args) => run(client, script, keys, args),
    runScriptAndWait: (script, keys, args, wait) => {
      if (waitClient === null || waitClient.status === "end") {
        // WAIT blocks its connection, so it gets one of its own.
        const own = client.duplicate(OWN);
        own.on("error", () => {});
        own.on("close", () => void waitLosses++);
        own.on("connect", () => own.stream?.unref());
        own.on("end", () => follow.delete(own));
        follow.add(own);
        waitClient = own;
      }
      return sendThenWait(waitClient, script, keys, args, wait);
    },
    scan: (cursor, glob, max) => scanNodes([scanner(client)], cursor, glob, max),
    info: async (section) => [textIn(await client.call("INFO", section))],
    subscribe: (channels, onMessage, onError) => {
      // When ioredis resubscribes while the connection is being ended, it leaves an unhandled
      // rejection, which ends the process. So we resubscribe ourselves, whenever the connection is
      // ready.
      const subscriber = client.duplicate({ ...OWN, autoResubscribe: false });
      follow.add(subscriber);
      return subscribed(subscriber, channels, onMessage, onError, () => follow.delete(subscriber));
    },
    close: () => {
      client.off("close", onLoss);
      follow.end();
      waitClient?.disconnect();
    },
  };
}

/**
 * Leaves the server and connects to the current primary. While ioredis asks the Sentinels, a
 * disconnect would end the client for good. So it may connect first, even to the old primary, and
 * leaves it then.
 */
export function reconnect(client: IoRedisSubscriber): void {
  if (client.status === "connect" || client.status === "ready") client.disconnect(true);
  // It pauses, and asks the Sentinels again afterwards.
  else if (client.status === "reconnecting") return;
  else if (client.status !== "end" && !leaving.has(client)) {
    leaving.add(client);
    client.once("connect", () => {
      leaving.delete(client);
      client.disconnect(true);
    });
  }
}

const leaving = new WeakSet<IoRedisSubscriber>();

/**
 * With Sentinels, our own connections follow the user's client to a new primary. Otherwise they
 * would stay connected to the old one and never notice.
 */
function followers(client: IoRedisClient) {
  const all = new Set<IoRedisSubscriber>();
  const leave = () => {
    for (const one of all) reconnect(one);
  };
  if (client.options.sentinels) client.on("close", leave);
  return {
    add: (one: IoRedisSubscriber) => void all.add(one),
    delete: (one: IoRedisSubscriber) => void all.delete(one),
    end: () => {
      client.off("close", leave);
      all.clear();
    },
  };
}

function adaptCluster(client: IoRedisClusterClient): RedisConnection {
  let waitClient: (IoRedisClusterClient & IoRedisSubscriber) | null = null;
  const losses = countLosses(client);
  const stalledCalls = new StalledCalls(() => client.refreshSlotsCache?.());
  const stalledWaits = new StalledCalls(() => waitClient?.refreshSlotsCache?.());
  return {
    connectionId: (key, waits) => {
      // The nodes of that client do not reconnect by themselves, so they never send twice.
      if (waits) return null;
      const address = client.slots[slotOf(key)]?.[0] ?? "";
      return `${address} ${losses.of(address)}`;
    },
    runScript: (script, keys, args) =>
      stalledCalls.watch(keys[0]!, run(client, script, keys, args)),
    runScriptAndWait: async (script, keys, args, wait) => {
      if (waitClient === null || waitClient.status === "end") {
        const more = { scaleReads: "master", clusterNodeRetryStrategy: null };
        const own = client.duplicate([], { ...OWN, ...more });
        own.on("error", () => {});
        unrefNodes(own);
        waitClient = own;
      }
      const own = waitClient;
      const key = keys[0]!;
      try {
        const node = nodeAt(own, await primaryOf(own, slotOf(key)));
        return await stalledWaits.watch(
          key,
          sendThenWait(node, script, keys, args, wait),
          wait.timeoutMs,
        );
      } catch (error) {
        // A command to a single node does not teach the client that another node serves the slot
        // now. Any command to the Cluster does, and this one changes nothing.
        own.call("EXISTS", key).catch(() => {});
        throw error;
      }
    },
    scan: (cursor, glob, max) => scanNodes(client.nodes("master").map(scanner), cursor, glob, max),
    info: (section) =>
      Promise.all(
        client.nodes("master").map(async (node) => textIn(await node.call("INFO", section))),
      ),
    shards: {
      primaryOf: (slot) => primaryOf(client, slot),
      listen: (address, onMessage, onError) =>
        listener(nodeAt(client, address), onMessage, onError),
    },
    subscribe: () => {
      throw new Error("a Cluster is listened to by its shards");
    },
    close: () => {
      losses.end();
      for (const stalled of [stalledCalls, stalledWaits]) stalled.close();
      waitClient?.disconnect();
    },
  };
}

function run(
  client: Commands,
  script: ScriptRef,
  keys: string[],
  args: string[],
): Promise<unknown> {
  return "sha" in script
    ? client.evalsha(script.sha, keys.length, ...keys, ...args)
    : client.eval(script.text, keys.length, ...keys, ...args);
}

const sendThenWait = (
  node: Commands,
  script: ScriptRef,
  keys: string[],
  args: string[],
  { replicas, timeoutMs }: { replicas: number; timeoutMs: number },
) =>
  waitReplicas([
    node.call(...WHICH_CONNECTION),
    run(node, script, keys, args),
    node.call("WAIT", String(replicas), String(timeoutMs)),
    node.call(...WHICH_CONNECTION),
  ]);

async function primaryOf(cluster: IoRedisClusterClient, slot: number): Promise<string> {
  const known = () => cluster.slots[slot]?.[0];
  let cause: unknown;
  // Any command makes the client learn who serves the slots. This one changes nothing, and it may
  // fail because the user has no right to the key.
  if (known() === undefined) {
    await cluster.call("EXISTS", tagOf(slot)).catch((error: unknown) => {
      cause = error;
    });
  }
  const address = known();
  if (address === undefined) throw new Error("CLUSTERDOWN nobody serves this slot", { cause });
  return address;
}

/**
 * Counts the lost connections to each node. After each loss ioredis sends unanswered commands
 * again.
 */
function countLosses(cluster: IoRedisClusterClient) {
  const losses = new Map<string, number>();
  const of = (address: string) => losses.get(address) ?? 0;
  function onLoss(this: IoRedisClient): void {
    losses.set(addressOf(this), of(addressOf(this)) + 1);
  }
  const add = (node: IoRedisClient) => void node.on("close", onLoss);
  for (const node of cluster.nodes("all")) add(node);
  cluster.on("+node", add);
  const end = () => {
    cluster.off("+node", add);
    for (const node of cluster.nodes("all")) node.off("close", onLoss);
  };
  return { of, end };
}

function addressOf({ options }: IoRedisClient): string {
  return `${options.host}:${options.port}`;
}

function nodeAt(cluster: IoRedisClusterClient, address: string): IoRedisClient {
  const node = cluster.nodes("master").find((one) => addressOf(one) === address);
  if (node === undefined) throw new Error("CLUSTERDOWN the primary of this slot is gone");
  return node;
}

function listener(
  node: IoRedisClient,
  onMessage: (channel: string, message: string) => void,
  onError: (error: Error) => void,
): NodeListener {
  const heard = new Map<string, "shard" | "everywhere">();
  const subscriber = node.duplicate({ ...OWN, autoResubscribe: false, retryStrategy: pause });
  const subscribe = async (channel: string, kind: "shard" | "everywhere") => {
    heard.set(channel, kind);
    await (kind === "shard" ? subscriber.ssubscribe(channel) : subscriber.subscribe(channel));
  };
  subscriber.on("error", onError);
  subscriber.on("message", onMessage);
  subscriber.on("smessage", onMessage);
  subscriber.on("connect", () => subscriber.stream?.unref());
  subscriber.on("ready", () => {
    for (const [channel, kind] of heard) subscribe(channel, kind).catch(onError);
  });
  return { subscribe, close: () => subscriber.disconnect() };
}

const scanner = (node: Commands) => (args: readonly string[]) => node.call("SCAN", ...args);

function pause(tries: number): number {
  return Math.min(50 * 2 ** tries, 2_000);
}

function unrefNodes(cluster: IoRedisSubscriber): void {
  cluster.on("+node", (node) => node.on("connect", () => node.stream?.unref()));
}

function subscribed(
  subscriber: IoRedisSubscriber,
  channels: readonly string[],
  onMessage: (channel: string, message: string) => void,
  onError: (error: Error) => void,
  closed: () => void = () => {},
): Subscription {
  subscriber.on("error", onError);
  subscriber.on("message", onMessage);
  const ready = new Promise<void>((resolve, reject) => {
    subscriber.on("ready", () => {
      const heard = subscriber.subscribe(...channels).then(() => {
        // A subscription must not keep the process alive. A waiter does that with its own timers.
        subscriber.stream?.unref();
        resolve();
      });
      heard.catch((error: Error) => {
        onError(error);
        reject(error);
      });
    });
    subscriber.on("end", () => reject(new Error("the connection was ended")));
  });
  const close = () => {
    closed();
    subscriber.disconnect();
  };
  return { ready, isOver: () => subscriber.status === "end", close };
}
