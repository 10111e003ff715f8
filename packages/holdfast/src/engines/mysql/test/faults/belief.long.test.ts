import { handOver } from "../../../../test-support/sql/belief.fixture.js";
import { believing } from "../support/belief.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ durable: true }, (play) => {
  play("of 1000 waiters that are let in none believes more than its row says", async (ground) => {
    const done = await handOver(believing(ground), 1_000);
    console.log(`${done} hand-overs, 0 holders believed more than their row says`);
  });
});
