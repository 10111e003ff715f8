// Clients whose clocks are hours off, in processes and sessions of other time zones.
import { meetSkewed } from "../../../../test-support/sql/skew.fixture.js";
import { init } from "../../index.js";
import { skewServer } from "../support/skew.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({ settings: ["timezone=Asia/Kathmandu"] }, (it) => {
  it("clocks and zones of clients change nothing in our rows", async (server) => {
    await meetSkewed(await skewServer(server, "rows"), 15);
  });

  it("clocks and zones of clients change nothing between ShedLock and us", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    await meetSkewed(await skewServer(server, "shedlock"), 15);
  });
});
