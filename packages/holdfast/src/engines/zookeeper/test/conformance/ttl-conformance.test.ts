import { after, before } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "@holdfast/servers";
import { type Excuse, findLaw } from "../../../conformance/index.js";
import { harness, registerLaws, type Servers } from "../test/support/harness.fixture.js";

let server: ZooKeeperServer;
const servers: Servers = { hosts: "", members: [], restart: () => server.restart() };

before(async () => {
  server = await startZooKeeper();
  Object.assign(servers, { hosts: server.hosts, members: [server] });
});

after(() => server.stop());

const excuses: Excuse[] = [
  ...excuse("the first claim that looks after the release is served", "L2.13", "L13.10"),
  ...excuse("who comes anew has seen nothing stand still for its ttl yet", "L9.10"),
];

registerLaws("records with a ttl", harness(servers, { hold: "ttl" }, excuses), 6);

/** Each of these laws fails by itself, so it is its own witness. */
function excuse(why: string, ...laws: string[]): Excuse[] {
  return laws.map((law) => ({ law, why, witness: (h) => findLaw(law).run(h) }));
}
