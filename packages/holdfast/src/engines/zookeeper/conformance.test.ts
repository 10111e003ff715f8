import { after, before, describe, it } from "node:test";
import { startZooKeeper, type ZooKeeperServer } from "@holdfast/servers";
import { checkLaws } from "../../conformance/index.js";
import { harness, type Servers } from "./harness.fixture.js";

// Most laws wait for a session to end.
const AT_A_TIME = 6;

const servers: Servers = { ports: [], hosts: "" };
let server: ZooKeeperServer;

before(async () => {
  server = await startZooKeeper();
  Object.assign(servers, { ports: [server.port], hosts: server.hosts });
});

after(() => server.stop());

const laws: [title: string, run: () => Promise<void>][] = [];
checkLaws(harness(servers), (title, run) => laws.push([title, run]));
// What these count in this process must not be another law's.
const counts = ([title]: (typeof laws)[number]) => /^L1[02]\./.test(title);

describe("one server, one law at a time", () => {
  for (const [title, run] of laws.filter(counts)) it(title, run);
});

describe("one server", { concurrency: AT_A_TIME }, () => {
  for (const [title, run] of laws.filter((law) => !counts(law))) it(title, run);
});
