import { after, before } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "@holdfast/servers";
import { type Excuse, findLaw } from "../../../../conformance/index.js";
import { harness, registerLaws, type Servers } from "../support/harness.fixture.js";

let server: ZooKeeperServer;
const servers: Servers = { hosts: "", members: [], restart: () => server.restart() };

before(async () => {
  server = await startZooKeeper();
  Object.assign(servers, { hosts: server.hosts, members: [server] });
});

after(() => server.stop());

const excuses: Excuse[] = [
  ...excuse(
    "the first waiter that looks after the release is granted the resource",
    "L2.13",
    "L13.10",
  ),
  ...excuse("a new claim has not seen the dead holder unchanged for a ttl yet", "L9.10"),
];

registerLaws("records with a ttl", harness(servers, { hold: "ttl" }, excuses), 6);

/** Each of these laws always fails here, so it is its own witness. */
function excuse(why: string, ...laws: string[]): Excuse[] {
  return laws.map((law) => ({ law, why, witness: (h) => findLaw(law).run(h) }));
}
