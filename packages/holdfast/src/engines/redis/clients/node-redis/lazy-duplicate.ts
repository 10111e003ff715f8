import type { OwnClient } from "./node-redis-client.js";

/** A connection of its own for WAIT, which blocks it. It is opened when first needed. */
export function lazyDuplicate<C extends OwnClient>(
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

/** destroy() throws if the client never opened or is already destroyed. */
export function end(client: OwnClient): void {
  if (client.isOpen) void Promise.resolve(client.destroy()).catch(() => {});
}
