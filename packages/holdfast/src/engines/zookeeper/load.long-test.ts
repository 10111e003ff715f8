import { test } from "node:test";
import { Ground } from "./ground.fixture.js";
import { keepMany } from "./many-leases.fixture.js";

test("10,000 leases of one process are kept by a handful of requests a second", async () => {
  await using ground = await Ground.start();
  await keepMany(ground, 10_000);
});
