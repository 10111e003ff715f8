import { handOver } from "../../../../test-support/sql/belief.fixture.js";
import { believing } from "../support/belief.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ durable: true }, (it) => {
  it("none of 1000 waiters that are let in believes in more time than its row says", async (server) => {
    const done = await handOver(believing(server), 1_000);
    console.log(`${done} hand-overs, 0 holders believed more than their row says`);
  });
});
