type Listener = (message: string, channel: string) => void;

/** A client that is opened beside the user's one. */
export interface OwnClient {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: Listener): Promise<unknown>;
  on(event: "error", listener: (error: Error) => void): unknown;
  destroy(): unknown;
}

/** How commands are sent to one server. */
export interface CommandSender {
  sendCommand(args: readonly string[]): Promise<unknown>;
}

/** The part of a node-redis client that this engine needs. */
export interface NodeRedisClient extends CommandSender {
  readonly isOpen: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: node-redis' own types cannot say "no timeout"
  withCommandOptions(options: any): CommandSender;
  connect(): Promise<unknown>;
  duplicate(): NodeRedisClient & NodeRedisSubscriber;
  destroy(): void;
}

export interface NodeRedisSubscriber extends OwnClient {
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
  duplicate(): NodeRedisSentinelClient & OwnClient;
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
  duplicate(): NodeRedisClusterClient & OwnClient;
  destroy(): void;
}
