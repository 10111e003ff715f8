// Clients whose clocks are hours off, in processes and sessions of other time zones.
import { meetSkewed } from "../../../../test-support/sql/skew.fixture.js";
import { init } from "../../index.js";
import { skewGround } from "../support/skew.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ settings: ["timezone=Asia/Kathmandu"] }, (play) => {
  play("clocks and zones of clients change nothing in our rows", async (ground) => {
    await meetSkewed(await skewGround(ground, "rows"), 15);
  });

  play("clocks and zones of clients change nothing between ShedLock and us", async (ground) => {
    await init(ground.admin, { shedlock: "shedlock" });
    await meetSkewed(await skewGround(ground, "shedlock"), 15);
  });
});
