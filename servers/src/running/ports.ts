import { randomInt } from "node:crypto";
import { createServer, type Server } from "node:net";

// Below the ports that the kernel assigns to connections and to programs that ask for any port. So
// the port of a server is still free when the server restarts.
const FIRST = 10_000;
const END = 32_000;
const TRIES = 100;

/** Ports of 127.0.0.1 that nobody listens on, all different. */
export async function freePorts(count: number): Promise<number[]> {
  // All stay open until the last is known. Otherwise one could be found twice.
  const held = await Promise.all(Array.from({ length: count }, () => listen()));
  const ports = held.map((server) => portOf(server));
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  if (port === undefined) throw new Error("freePorts(1) gave no port");
  return port;
}

async function listen(): Promise<Server> {
  for (let tries = 1; ; tries++) {
    try {
      return await listenOn(randomInt(FIRST, END));
    } catch (error) {
      if (tries === TRIES) throw error;
    }
  }
}

function listenOn(port: number): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("not a TCP server");
  return address.port;
}
