// Lists of many names. ZooKeeper returns all names of a folder or none, so a list reads them once.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { now } from "../../../../test-support/call.fixture.js";
import { checkListAmongChanges } from "../../../../test-support/list-among-changes.fixture.js";
import { checkListCost } from "../../../../test-support/list-cost.fixture.js";
import { getChildren } from "../../wire/operations.js";
import { Session } from "../../wire/session.js";
import { fill } from "../support/names.fixture.js";
import { ZookeeperTestServer } from "../support/test-server.fixture.js";

const CHILDREN = getChildren("/").opcode;

let namesRead = 0;
const ask = Session.prototype.ask;
mock.method(Session.prototype, "ask", async function (this: Session, ...asked: never[]) {
  const answer = await Reflect.apply(ask, this, asked);
  const [operation] = asked as unknown as Parameters<typeof ask>;
  if (operation.opcode === CHILDREN) namesRead += answer.value?.names.length ?? 0;
  return answer;
});

for (const hold of ["session", "ttl"] as const) {
  test(`hold ${hold}: a list reads each name once, however many pages there are`, async () => {
    await using testServer = await ZookeeperTestServer.start();
    await checkListCost({
      locks: testServer.locks({ hold }),
      fill: (first, last) => fill(testServer, hold, first, last),
      cost: () => namesRead,
      // The name, and its holder.
      mostPerName: 2,
    });
  });
}

for (const hold of ["session", "ttl"] as const) {
  test(`hold ${hold}: a list goes on while names come and go, and the server restarts`, async () => {
    await using testServer = await ZookeeperTestServer.start();
    await checkListAmongChanges(testServer.engine({ hold }), () => testServer.server.restart());
  });
}

test("each of two lists at the same time reads the names once, in any order of pages", async () => {
  await using testServer = await ZookeeperTestServer.start();
  await fill(testServer, "session", 1, 600);
  const locks = testServer.locks();
  const before = namesRead;
  const lists = Array.from({ length: 6 }, async () => {
    let views = 0;
    for await (const { resource } of locks.list()) views += resource.startsWith("name-") ? 1 : 0;
    return views;
  });
  assert.deepEqual(await Promise.all(lists), Array(6).fill(600));
  assert.ok(namesRead - before <= 6 * 2 * 600, `${namesRead - before} names were read`);
});

test("a list goes on with the cursor of another process", async () => {
  await using testServer = await ZookeeperTestServer.start();
  await fill(testServer, "session", 1, 300);
  const [one, other] = [testServer.engine(), testServer.engine()];
  const first = await one.list({ match: "*", cursor: null, max: 200 }, now());
  const rest = await other.list({ match: "*", cursor: first.cursor, max: 200 }, now());
  const names = [...first.views, ...rest.views].map(({ resource }) => resource);
  assert.deepEqual([new Set(names).size, names.length, rest.cursor], [300, 300, null]);
});
