import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../connect.js";
import { Ground } from "./ground.fixture.js";

test("readers that come and go remove what is over, though most of them look at nobody", async () => {
  await using ground = new Ground();
  await using locks = await connect(ground.url);
  const shared = { mode: "shared" } as const;
  await locks.acquire("a", shared);
  await ground.sql("UPDATE grants SET expires_at = 0 RETURNING 1");
  const rows = async () => (await ground.sql("SELECT grant_id FROM grants")).length;
  for (let i = 0; i < 300; i++) await (await locks.acquire("a", shared)).release();
  assert.equal(await rows(), 0);
});

test("a reader sees a writer that died, and waits for one that lives", async () => {
  await using ground = new Ground();
  await using locks = await connect(ground.url);
  const writer = await locks.acquire("a", { renew: false });
  assert.equal(await locks.tryAcquire("a", { mode: "shared" }), null);
  await ground.sql("UPDATE grants SET expires_at = 0 RETURNING 1");
  const reader = await locks.acquire("a", { mode: "shared" });
  assert.ok(reader.token > writer.token);
});
