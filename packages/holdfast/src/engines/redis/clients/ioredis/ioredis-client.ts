/** How commands are sent, to a server or through a Cluster. */
export interface Commands {
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
