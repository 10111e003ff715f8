import { UsageError } from "../../errors.js";

/** The part of ioredis that this engine needs. */
export interface IoRedisClient {
  readonly options: { readonly keyPrefix?: string | undefined };
  readonly status: string;
  evalsha(sha: string, keyCount: number, ...rest: string[]): Promise<unknown>;
  eval(script: string, keyCount: number, ...rest: string[]): Promise<unknown>;
  scan(cursor: string, match: "MATCH", glob: string, count: "COUNT", max: number): Promise<unknown>;
  duplicate(override?: object): IoRedisSubscriber;
  disconnect(): void;
}

export interface IoRedisSubscriber {
  subscribe(...channels: string[]): Promise<unknown>;
  on(event: "message", listener: (channel: string, message: string) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "connect" | "ready" | "end", listener: () => void): unknown;
  readonly stream?: { unref(): unknown };
  disconnect(): void;
}

/** The part of node-redis that this engine needs. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  sendCommand(args: readonly string[]): Promise<unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: node-redis' own types cannot say "no timeout"
  withCommandOptions(options: any): { sendCommand(args: readonly string[]): Promise<unknown> };
  connect(): Promise<unknown>;
  duplicate(): NodeRedisSubscriber;
  destroy(): void;
}

export interface NodeRedisSubscriber {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: (message: string, channel: string) => void): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  unref(): unknown;
  destroy(): void;
}

export type RedisClient = IoRedisClient | NodeRedisClient;

/** A connection of its own, which comes back by itself when it was lost. */
export interface Subscription {
  /** Resolves once everything is heard; until then, and after a failure, only close is left to do. */
  readonly ready: Promise<void>;
  close(): void;
}

/** What the engine asks of either client. */
export interface Seam {
  /** EVALSHA, or EVAL where a text is given. */
  script(how: { sha: string } | { text: string }, keys: string[], args: string[]): Promise<unknown>;
  scan(cursor: string, glob: string, max: number): Promise<[cursor: string, keys: string[]]>;
  subscribe(
    channels: readonly string[],
    onMessage: (channel: string, message: string) => void,
    onError: (error: Error) => void,
  ): Subscription;
}

export function seamOf(client: RedisClient): Seam {
  if (typeof client === "object" && client !== null) {
    if ("withCommandOptions" in client) return nodeRedisSeam(client);
    if ("evalsha" in client && "duplicate" in client) {
      refuseKeyPrefix(client);
      return ioRedisSeam(client);
    }
  }
  throw new UsageError(
    "client must be a client of node-redis (createClient) or of ioredis (new Redis), connected or not",
  );
}

/** ioredis puts it before some keys and not before others; locks would be neither found nor heard of. */
function refuseKeyPrefix({ options }: IoRedisClient): void {
  if (!options?.keyPrefix) return;
  throw new UsageError(
    `the client has keyPrefix ${JSON.stringify(options.keyPrefix)}; use a client without one, ` +
      "and give the engine a prefix instead",
  );
}

function ioRedisSeam(client: IoRedisClient): Seam {
  return {
    script: (how, keys, args) =>
      "sha" in how
        ? client.evalsha(how.sha, keys.length, ...keys, ...args)
        : client.eval(how.text, keys.length, ...keys, ...args),
    scan: async (cursor, glob, max) =>
      (await client.scan(cursor, "MATCH", glob, "COUNT", max)) as [string, string[]],
    subscribe: (channels, onMessage, onError) => {
      // Its own way to subscribe again leaves a rejection that nobody handles when the connection
      // is ended meanwhile, and that ends the process. So this does it, at every new connection.
      const subscriber = client.duplicate({
        ...{ autoResubscribe: false, lazyConnect: false, maxRetriesPerRequest: null },
      });
      subscriber.on("error", onError);
      subscriber.on("message", onMessage);
      const ready = new Promise<void>((resolve, reject) => {
        subscriber.on("ready", () => {
          const heard = subscriber.subscribe(...channels).then(() => {
            // Hearing is no reason for a process to stay; waiting is, and keeps timers of its own.
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
      return { ready, close: () => subscriber.disconnect() };
    },
  };
}

function nodeRedisSeam(client: NodeRedisClient): Seam {
  // By default node-redis makes an AbortSignal for every command, which guards only commands that
  // were not sent yet and takes most of the client's time. The core keeps its own deadline.
  const quick = client.withCommandOptions({ timeout: undefined });
  return {
    script: (how, keys, args) => {
      const head = "sha" in how ? ["EVALSHA", how.sha] : ["EVAL", how.text];
      return quick.sendCommand([...head, String(keys.length), ...keys, ...args]);
    },
    scan: async (cursor, glob, max) =>
      (await quick.sendCommand(["SCAN", cursor, "MATCH", glob, "COUNT", String(max)])) as [
        string,
        string[],
      ],
    subscribe: (channels, onMessage, onError) => {
      const subscriber = client.duplicate();
      subscriber.on("error", onError);
      const listen = async () => {
        await subscriber.connect();
        for (const channel of channels) {
          await subscriber.subscribe(channel, (message) => onMessage(channel, message));
        }
        // Hearing is no reason for a process to stay; waiting is, and keeps timers of its own.
        subscriber.unref();
      };
      // destroy() of a client that never opened, or is destroyed already, throws.
      return { ready: listen(), close: () => subscriber.isOpen && subscriber.destroy() };
    },
  };
}
