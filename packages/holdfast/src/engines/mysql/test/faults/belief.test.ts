// On a server that waits for its disk, so that others can act between a commit and its answer.
import { handOver, renewAtOnce } from "../../../../test-support/sql/belief.fixture.js";
import { believing } from "../support/belief.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ durable: true }, (it) => {
  it("a waiter that is let in does not believe in more time than its row says", async (server) => {
    await handOver(believing(server), 60);
  });

  it("overlapping renewals of a live grant never answer gone", (server) =>
    renewAtOnce(believing(server), 30));
});
