import { after, before } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "@holdfast/servers";
import { harness, registerLaws, type Servers } from "./harness.fixture.js";

let server: ZooKeeperServer;
const servers: Servers = { ports: [], hosts: "", restart: () => server.restart() };

before(async () => {
  server = await startZooKeeper();
  Object.assign(servers, { ports: [server.port], hosts: server.hosts });
});

after(() => server.stop());

registerLaws("one server", harness(servers), 8);
