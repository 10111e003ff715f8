import { test } from "node:test";
import { checkLongList } from "../../../../test-support/long-list.fixture.js";
import { fill } from "../support/names.fixture.js";
import { ZookeeperTestServer } from "../support/test-server.fixture.js";

// A list keeps its names until it has ended. With a ttl the engine also remembers when it observed
// each of them.
const MOST_HEAP_MB = { session: 30, ttl: 60 } as const;

for (const hold of ["session", "ttl"] as const) {
  test(`hold ${hold}: a list of 100,000 names takes linear time, and keeps little memory`, async () => {
    await using testServer = await ZookeeperTestServer.start({ java: ["-Xmx512m"] });
    await checkLongList({
      engine: testServer.engine({ hold }),
      pids: [testServer.server.pid],
      fill: (first, last) => fill(testServer, hold, first, last),
      mostHeapMb: MOST_HEAP_MB[hold],
    });
  });
}
