// On a server that waits for its disk: between a commit and the answer there is time for others.
import { handOver, renewAtOnce } from "../../../../test-support/sql/belief.fixture.js";
import { believing } from "../support/belief.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ durable: true }, (play) => {
  play("a waiter that is let in believes no more than its row says", async (ground) => {
    await handOver(believing(ground), 60);
  });

  play("renewals of one live grant that overlap never say that it is gone", (ground) =>
    renewAtOnce(believing(ground), 30),
  );
});
