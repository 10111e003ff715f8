import { after, before } from "node:test";
import { startZooKeeperEnsemble, type ZooKeeperEnsemble } from "@holdfast/servers";
import { harness, registerLaws, type Servers } from "../support/harness.fixture.js";

let ensemble: ZooKeeperEnsemble;
const servers: Servers = {
  hosts: "",
  members: [],
  restart: async () => {
    await Promise.all(ensemble.members.map((member) => member.kill()));
    await Promise.all(ensemble.members.map((member) => member.start()));
  },
};

before(async () => {
  ensemble = await startZooKeeperEnsemble();
  const { hosts, members } = ensemble;
  Object.assign(servers, { hosts, members });
});

after(() => ensemble.stop());

registerLaws("three servers", harness(servers), 8);
