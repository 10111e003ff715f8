// Lists of many names. etcd walks all keys of a range to count them, however few it returns.
import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { startEtcd } from "@holdfast/servers";
import type { ListPage } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { checkListAmongChanges } from "../../../../test-support/list-among-changes.fixture.js";
import { checkListCost } from "../../../../test-support/list-cost.fixture.js";
import { EtcdClient } from "../../client/client.js";
import { countOf } from "../../client/requests.js";
import { fill } from "../support/names.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

// The range of a page may hold more keys than the page shows.
const MOST_WALKED = 6;

let walked = 0;
const txn = EtcdClient.prototype.txn;
mock.method(
  EtcdClient.prototype,
  "txn",
  async function (this: EtcdClient, ...asked: Parameters<typeof txn>) {
    const answer = await Reflect.apply(txn, this, asked);
    for (const [i] of (answer.responses ?? []).entries()) walked += countOf(answer, i);
    return answer;
  },
);

test("a list makes etcd walk few keys for each name, however many there are", async () => {
  await using server = await startEtcd();
  await using testServer = new EtcdTestServer(server);
  await checkListCost({
    locks: testServer.locks(),
    fill: (first, last) => fill(testServer, first, last),
    cost: () => walked,
    mostPerName: MOST_WALKED,
  });
});

test("a list asks once a page for the remaining time of a lease, however many grants are on it", async () => {
  await using server = await startEtcd();
  await using testServer = new EtcdTestServer(server);
  await checkListCost({
    locks: testServer.locks(),
    fill: (first, last) => fill(testServer, first, last),
    cost: () => testServer.calls("LeaseTimeToLive"),
    // There are two leases, and some pages are short.
    mostPerName: 4 / 256,
  });
});

test("a list goes on while names come and go, and the server restarts", async () => {
  await using server = await startEtcd();
  await using testServer = new EtcdTestServer(server);
  await checkListAmongChanges(testServer.engine(), () => server.restart());
});

// Scan ranges end between resources, whatever the names begin with.
test("a list gives each of many names once, in any alphabet", async () => {
  await using server = await startEtcd();
  await using testServer = new EtcdTestServer(server);
  const kinds = ["name-", "name-1", "%/", "\u{10ffff}", "\ud7ff", "\ue000", "z\u{1f512}", "/", "~"];
  const nameOf = (i: number) => kinds[i % kinds.length]! + String.fromCodePoint(0x21 + i) + i;
  await fill(testServer, 1, 1_500, nameOf);
  const expected = Array.from({ length: 1_500 }, (_, i) => nameOf(i + 1)).sort();
  const engine = testServer.engine();
  for (const max of [256, 17]) {
    const names: string[] = [];
    let cursor: string | null = null;
    do {
      const page: ListPage = await engine.list({ match: "*", cursor, max }, now());
      assert.ok(page.views.length <= max);
      names.push(...page.views.map(({ resource }) => resource));
      cursor = page.cursor;
    } while (cursor !== null);
    assert.deepEqual(names.sort(), expected, `pages of ${max}`);
  }
});
