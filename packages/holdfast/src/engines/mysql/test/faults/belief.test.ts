// On a server that waits for its disk: between a commit and the answer there is time for others.
import { handOver, renewAtOnce } from "../../../../test-support/sql/belief.fixture.js";
import { believing } from "../support/belief.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ durable: true }, (it) => {
  it("a waiter that is let in believes no more than its row says", async (server) => {
    await handOver(believing(server), 60);
  });

  it("renewals of one live grant that overlap never say that it is gone", (server) =>
    renewAtOnce(believing(server), 30));
});
