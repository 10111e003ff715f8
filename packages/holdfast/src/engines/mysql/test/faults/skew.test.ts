// Clients whose clocks are hours off, in processes and sessions of other time zones.
import { meetSkewed } from "../../../../test-support/sql/skew.fixture.js";
import { init } from "../../index.js";
import { skewGround } from "../support/skew.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ args: ["--default-time-zone=+05:45"] }, (play) => {
  play("clocks and zones of clients change nothing in our rows", async (ground) => {
    await meetSkewed(await skewGround(ground, "rows"), 15);
  });

  play("clocks and zones of clients change nothing between ShedLock and us", async (ground) => {
    await init(ground.admin, { shedlock: "shedlock" });
    await meetSkewed(await skewGround(ground, "shedlock"), 15);
  });

  play("nor in a table of ShedLock's whose columns follow the session's zone", async (ground) => {
    await ground.admin.query(`CREATE TABLE zoned (name VARCHAR(64), lock_until TIMESTAMP(3) NULL,
      locked_at TIMESTAMP(3) NULL, locked_by VARCHAR(255), PRIMARY KEY (name))`);
    const tables = { prefix: "zoned_", shedlock: "zoned" };
    await init(ground.admin, tables);
    await meetSkewed(await skewGround(ground, "shedlock", tables), 15);
  });
});
