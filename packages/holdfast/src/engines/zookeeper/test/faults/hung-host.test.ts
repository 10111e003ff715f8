// One host of three hangs: it accepts connections and never answers.
import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { connect } from "../../../../connect.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

const [ROUNDS, AT_ONCE] = [10, 10];

let zookeeper: ZookeeperTestServer;
let hung: { readonly port: number; close(): void };

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    socket.resume();
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  const { port } = server.address() as { port: number };
  hung = {
    port,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
});

after(async () => {
  hung.close();
  await zookeeper[Symbol.asyncDispose]();
});

/** Two relays to one server, so that both answer. */
function hosts(): string {
  const { port } = zookeeper.server;
  return `127.0.0.1:${hung.port},127.0.0.1:${port},127.0.0.1:${port}`;
}

async function all(work: () => Promise<void>): Promise<void> {
  for (let i = 0; i < ROUNDS; i++) {
    const answers = await Promise.allSettled(Array.from({ length: AT_ONCE }, work));
    assert.deepEqual(
      answers.filter(({ status }) => status === "rejected"),
      [],
    );
  }
}

test("every connect succeeds while one host of three hangs", async () => {
  await all(async () => {
    const locks = await connect(`zookeeper://${hosts()}`);
    await locks.close();
  });
});

test("every first acquire on a new session succeeds while one host of three hangs", async () => {
  await all(async () => {
    const locks = zookeeper.locks({ hosts: hosts() });
    const lease = await locks.acquire(fresh(), { ttlMs: 40_000 });
    await lease.release();
    await locks.close();
  });
});
