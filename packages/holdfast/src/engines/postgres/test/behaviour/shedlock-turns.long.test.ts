import { takeTurns } from "../../../../test-support/sql/shedlock.fixture.js";
import { meetSkewed } from "../../../../test-support/sql/skew.fixture.js";
import { init } from "../../index.js";
import { shedLockServer } from "../support/shedlock.fixture.js";
import { skewServer } from "../support/skew.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({ settings: ["timezone=Asia/Kathmandu"] }, (it) => {
  it("1,000 turns with ShedLock, in other time zones, do not overlap", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    await takeTurns(shedLockServer(server), 1_000);
  });

  it("1,000 turns of ShedLock's and of three programs, two with skewed clocks", async (server) => {
    await meetSkewed(await skewServer(server, "shedlock"), 250);
  });
});
