import { notOpen } from "../protocol/failure.js";
import { textIn } from "../protocol/shape.js";
import { slotOf } from "../protocol/slots.js";
import { StalledCalls } from "../sending/stalled-calls.js";
import { WHICH_CONNECTION, waitReplicas } from "../sending/wait-replicas.js";
import type { RedisConnection, ScriptRef, Subscription } from "./connection.js";
import { scanNodes } from "./scan.js";
import { SentinelReconnect } from "./sentinel-reconnect.js";

type Listener = (message: string, channel: string) => void;

interface Subscriber {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: Listener): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
  destroy(): unknown;
}

interface Sends {
  sendCommand(args: readonly string[]): Promise<unknown>;
}

/** The part of a node-redis client that this engine needs. */
export interface NodeRedisClient extends Sends {
  readonly isOpen: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: node-redis' own types cannot say "no timeout"
  withCommandOptions(options: any): Sends;
  connect(): Promise<unknown>;
  duplicate(): NodeRedisClient & NodeRedisSubscriber;
  destroy(): void;
}

export interface NodeRedisSubscriber extends Subscriber {
  sSubscribe(channel: string, listener: Listener): Promise<unknown>;
  unref(): unknown;
}

/** The part of a node-redis sentinel client that this engine needs. */
export interface NodeRedisSentinelClient {
  readonly isOpen: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: node-redis' own types cannot say "no timeout"
  withCommandOptions(options: any): {
    sendCommand(isReadonly: boolean, args: readonly string[]): Promise<unknown>;
  };
  getMasterNode(): unknown;
  on(event: "topology-change", listener: () => void): unknown;
  off(event: "topology-change", listener: () => void): unknown;
  use<T>(
    work: (client: {
      // biome-ignore lint/suspicious/noExplicitAny: node-redis' own types cannot say "no timeout"
      sendCommand(isReadonly: boolean, args: readonly string[], options: any): Promise<unknown>;
    }) => Promise<T>,
  ): Promise<T>;
  connect(): Promise<unknown>;
  duplicate(): NodeRedisSentinelClient & Subscriber;
  destroy(): unknown;
}

/** The part of a node-redis cluster client that this engine needs. */
export interface NodeRedisClusterClient {
  readonly isOpen: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: node-redis' own types cannot say "no timeout"
  withCommandOptions(options: any): {
    sendCommand(
      key: string | undefined,
      isReadonly: boolean,
      args: readonly string[],
    ): Promise<unknown>;
  };
  readonly masters: readonly { readonly address: string }[];
  readonly slots: readonly { readonly master: { readonly address: string } }[];
  /**
   * A private part of the client: there is no other way to make it ask again who serves the slots.
   */
  readonly _slots?: { rediscover?(startWith: unknown): Promise<unknown> };
  // biome-ignore lint/suspicious/noExplicitAny: a node is handed back as it came
  nodeClient(node: any): Promise<NodeRedisClient>;
  connect(): Promise<unknown>;
  duplicate(): NodeRedisClusterClient & Subscriber;
  destroy(): void;
}

// By default node-redis makes an AbortSignal for every command. It takes most of the client's time
// and covers only commands that were not sent yet; the core has its own deadline. typeMapping is
// empty, because our answers must not be read with the types that the user's program has chosen for
// its own.
const OWN = { timeout: undefined, typeMapping: {} };

export function adaptNodeRedis(
  client: NodeRedisClient | NodeRedisSentinelClient | NodeRedisClusterClient,
): RedisConnection {
  if ("nodeClient" in client) return adaptCluster(client);
  return "getMasterNode" in client ? adaptSentinel(client) : adaptSingle(client);
}

function adaptSingle(client: NodeRedisClient): RedisConnection {
  const bare = client.withCommandOptions(OWN);
  const quick: Sends = {
    sendCommand: (args) =>
      client.isOpen ? bare.sendCommand(args) : Promise.reject(notOpen("createClient")),
  };
  const waitClient = lazyDuplicate(client, (copy) => copy.unref());
  return {
    runScript: (script, keys, args) => quick.sendCommand(scriptCommand(script, keys, args)),
    runScriptAndWait: async (script, keys, args, wait) =>
      sendThenWait(
        (await waitClient.open()).withCommandOptions(OWN),
        scriptCommand(script, keys, args),
        wait,
      ),
    scan: (cursor, glob, max) => scanNodes([scanner(quick)], cursor, glob, max),
    info: async (section) => [textIn(await quick.sendCommand(["INFO", section]))],
    subscribe: (channels, onMessage, onError) => {
      const copy = client.duplicate();
      // A subscription must not keep the process alive. A waiter does that with its own timers.
      return subscribed(copy, channels, onMessage, onError, () => copy.unref());
    },
    close: () => waitClient.close(),
  };
}

function adaptSentinel(client: NodeRedisSentinelClient): RedisConnection {
  const quick = client.withCommandOptions(OWN);
  const reconnecting = new SentinelReconnect(() => client);
  const primary: Sends = {
    sendCommand: (args) => {
      if (!client.isOpen) return Promise.reject(notOpen("createSentinel"));
      const wait = reconnecting.wait();
      if (wait === null) return quick.sendCommand(false, args);
      return wait.then(() => quick.sendCommand(false, args));
    },
  };
  // The client sends a command again when it has lost the connection to the primary, and emits this
  // event when it opens a new one.
  let [changes, waitChanges] = [0, 0];
  const changed = () => void changes++;
  client.on("topology-change", changed);
  const waitClient = lazyDuplicate(client, (copy) =>
    copy.on("topology-change", () => void waitChanges++),
  );
  const waitReconnecting = new SentinelReconnect(() => waitClient.connected());
  return {
    connectionId: (_, waits) => (waits ? waitChanges : changes),
    runScript: (script, keys, args) => primary.sendCommand(scriptCommand(script, keys, args)),
    runScriptAndWait: async (script, keys, args, wait) => {
      const copy = await waitClient.open();
      await waitReconnecting.wait();
      return copy.use((lent) =>
        sendThenWait(
          { sendCommand: (command) => lent.sendCommand(false, command, OWN) },
          scriptCommand(script, keys, args),
          wait,
        ),
      );
    },
    scan: (cursor, glob, max) => scanNodes([scanner(primary)], cursor, glob, max),
    info: async (section) => [textIn(await primary.sendCommand(["INFO", section]))],
    subscribe: (channels, onMessage, onError) =>
      subscribed(client.duplicate(), channels, onMessage, onError),
    close: () => {
      client.off("topology-change", changed);
      waitClient.close();
    },
  };
}

function adaptCluster(client: NodeRedisClusterClient): RedisConnection {
  const quick = client.withCommandOptions(OWN);
  const waitClient = lazyDuplicate(client);
  const stalledCalls = new StalledCalls((key) => rediscover(client, key));
  const stalledWaits = new StalledCalls((key) => {
    const copy = waitClient.connected();
    if (copy !== null) rediscover(copy, key);
  });
  const primaries = () =>
    Promise.all(
      client.masters.map(async (node) => (await client.nodeClient(node)).withCommandOptions(OWN)),
    );
  return {
    runScript: (script, keys, args) =>
      client.isOpen
        ? stalledCalls.watch(
            keys[0]!,
            quick.sendCommand(keys[0], false, scriptCommand(script, keys, args)),
          )
        : Promise.reject(notOpen("createCluster")),
    runScriptAndWait: async (script, keys, args, wait) => {
      const cluster = await waitClient.open();
      const key = keys[0]!;
      const serving = cluster.slots[slotOf(key)];
      if (serving === undefined) throw new Error("CLUSTERDOWN nobody serves this slot");
      const node = await cluster.nodeClient(serving.master);
      try {
        const asked = sendThenWait(
          node.withCommandOptions(OWN),
          scriptCommand(script, keys, args),
          wait,
        );
        return await stalledWaits.watch(key, asked, wait.timeoutMs);
      } catch (error) {
        // Any command to the Cluster makes the client learn who serves the slot. This one changes
        // nothing.
        const moved = /^(MOVED|ASK) /.test((error as Error).message);
        if (moved) await cluster.withCommandOptions(OWN).sendCommand(key, false, ["EXISTS", key]);
        throw error;
      }
    },
    scan: async (cursor, glob, max) =>
      scanNodes((await primaries()).map(scanner), cursor, glob, max),
    info: async (section) =>
      Promise.all(
        (await primaries()).map(async (node) => textIn(await node.sendCommand(["INFO", section]))),
      ),
    shards: {
      primaryOf: (slot) => {
        const address = client.slots[slot]?.master.address;
        if (address === undefined) throw new Error("CLUSTERDOWN nobody serves this slot");
        return address;
      },
      listen: (address, onMessage, onError) => {
        const node = client.masters.find((one) => one.address === address);
        const opening = (async () => {
          if (node === undefined) throw new Error("CLUSTERDOWN the primary of this slot is gone");
          const copy = (await client.nodeClient(node)).duplicate();
          copy.on("error", onError);
          await copy.connect();
          copy.unref();
          return copy;
        })();
        opening.catch(() => {});
        // Always the same function, because node-redis does not add a listener twice.
        const listen = (message: string, channel: string) => onMessage(channel, message);
        return {
          subscribe: async (channel, kind) => {
            const copy = await opening;
            await (kind === "shard"
              ? copy.sSubscribe(channel, listen)
              : copy.subscribe(channel, listen));
          },
          close: () => void opening.then(end, () => {}),
        };
      },
    },
    subscribe: () => {
      throw new Error("a Cluster is listened to by its shards");
    },
    close: () => {
      for (const stalled of [stalledCalls, stalledWaits]) stalled.close();
      waitClient.close();
    },
  };
}

/**
 * Asks the other primary that answers first who serves the slots. By itself node-redis may ask a
 * primary that hangs, and it would wait for ever, as it has no deadline for this question.
 */
function rediscover(client: NodeRedisClusterClient, key: string): void {
  const late = client.slots[slotOf(key)]?.master.address;
  const others = client.masters.filter(({ address }) => address !== late);
  const answering = others.map(async (other) => {
    const node = await client.nodeClient(other);
    await node.sendCommand(["PING"]);
    return node;
  });
  Promise.any(answering)
    .then((node) => client._slots?.rediscover?.(node))
    // No primary answers. The calls themselves fail and report that.
    .catch(() => {});
}

function scriptCommand(script: ScriptRef, keys: string[], args: string[]): string[] {
  const head = "sha" in script ? ["EVALSHA", script.sha] : ["EVAL", script.text];
  return head.concat(String(keys.length), keys, args);
}

const sendThenWait = (
  node: Sends,
  command: string[],
  { replicas, timeoutMs }: { replicas: number; timeoutMs: number },
) =>
  waitReplicas([
    node.sendCommand(WHICH_CONNECTION),
    node.sendCommand(command),
    node.sendCommand(["WAIT", String(replicas), String(timeoutMs)]),
    node.sendCommand(WHICH_CONNECTION),
  ]);

const scanner = (node: Sends) => (args: readonly string[]) => node.sendCommand(["SCAN", ...args]);

/** A connection of its own for WAIT, which blocks it. It is opened when first needed. */
function lazyDuplicate<C extends Subscriber>(
  client: { duplicate(): C },
  opened: (copy: C) => void = () => {},
): { open(): Promise<C>; connected(): C | null; close(): void } {
  let copy: C | null = null;
  let connected: C | null = null;
  let opening: Promise<C> | null = null;
  const open = async () => {
    const own = client.duplicate();
    copy = own;
    own.on("error", () => {});
    await own.connect();
    opened(own);
    connected = own;
    return own;
  };
  return {
    open: () => {
      // A client that is configured to give up does not reconnect by itself.
      if (connected?.isOpen === false) opening = connected = null;
      opening ??= open().catch((error: unknown) => {
        opening = null;
        throw error;
      });
      return opening;
    },
    connected: () => connected,
    close: () => copy !== null && end(copy),
  };
}

function subscribed(
  subscriber: Subscriber,
  channels: readonly string[],
  onMessage: (channel: string, message: string) => void,
  onError: (error: Error) => void,
  connected: () => void = () => {},
): Subscription {
  subscriber.on("error", onError);
  let isReady = false;
  const listen = async () => {
    await subscriber.connect();
    for (const channel of channels) {
      await subscriber.subscribe(channel, (message) => onMessage(channel, message));
    }
    isReady = true;
    connected();
  };
  const ready = listen();
  return {
    ready,
    isOver: () => isReady && !subscriber.isOpen,
    close: () => end(subscriber),
  };
}

/** destroy() throws if the client never opened or is already destroyed. */
function end(client: Subscriber): void {
  if (client.isOpen) void Promise.resolve(client.destroy()).catch(() => {});
}
