// What opening a file costs the others that use it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../../../core/runtime/clock.js";
import type { SqlClient } from "../../file/client.js";
import { openDatabase } from "../../file/database.js";
import { resolveSqlite } from "../../options.js";
import { Store } from "../../records/store.js";
import { TestServer } from "../support/test-server.fixture.js";

test("of many that create a file together, one waits for the disk and reserves tokens", async () => {
  await using server = new TestServer();
  const creators = Array.from({ length: 8 }, () => storeOn(server));
  await Promise.all(creators.map((store) => store.open()));
  const [counter] = await server.sql("SELECT next, reserved FROM counter");
  assert.deepEqual({ ...counter }, { next: 1, reserved: 1 + 2 ** 20 });
  for (const store of creators) await store.close();
});

let stores = 0;

function storeOn(server: TestServer, watch = (client: SqlClient) => client) {
  const terms = resolveSqlite({ path: server.path });
  const open = async (...args: Parameters<typeof openDatabase>) =>
    watch(await openDatabase(...args));
  const store = new Store(terms, `store ${++stores}`, systemClock, () => {}, open);
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}
