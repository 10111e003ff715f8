import { test } from "node:test";
import { roll, ways } from "../support/survival.fixture.js";

const ROUNDS = 10;

for (const [name, way] of Object.entries(ways)) {
  test(`${ROUNDS} of ${ROUNDS} rolling restarts ${name} leave the lease alone`, {
    timeout: 3_600_000,
  }, async () => {
    for (let round = 0; round < ROUNDS; round++) await roll({ waiters: 8, ...way });
  });
}
