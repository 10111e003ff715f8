import type { IoRedisClient, IoRedisSubscriber } from "./ioredis-client.js";

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
export function followers(client: IoRedisClient) {
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
