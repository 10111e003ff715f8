import { after, before } from "node:test";
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from "@holdfast/servers";
import { harness, registerLaws, type Servers } from "./harness.fixture.js";

let ensemble: ZooKeeperEnsemble;
const servers: Servers = {
  ports: [],
  hosts: "",
  restart: async () => {
    await Promise.all(ensemble.members.map((member) => member.kill()));
    await Promise.all(ensemble.members.map((member) => member.start()));
  },
};

before(async () => {
  ensemble = await startZooKeeperEnsemble();
  const ports = ensemble.members.map(({ port }) => port);
  Object.assign(servers, { ports, hosts: ensemble.hosts });
});

after(() => ensemble.stop());

registerLaws("three servers", harness(servers), 8);
