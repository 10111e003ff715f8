import { after, before } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "@holdfast/servers";
import { harness, registerLaws, type Servers } from "../support/harness.fixture.js";

let server: ZooKeeperServer;
const servers: Servers = { hosts: "", members: [], restart: () => server.restart() };

before(async () => {
  server = await startZooKeeper();
  Object.assign(servers, { hosts: server.hosts, members: [server] });
});

after(() => server.stop());

registerLaws("one server", harness(servers), 8);
