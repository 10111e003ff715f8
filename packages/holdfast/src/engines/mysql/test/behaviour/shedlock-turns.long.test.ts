import { takeTurns } from "../../../../test-support/sql/shedlock.fixture.js";
import { meetSkewed } from "../../../../test-support/sql/skew.fixture.js";
import { init } from "../../index.js";
import { onGround } from "../support/shedlock.fixture.js";
import { skewGround } from "../support/skew.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({ args: ["--default-time-zone=+05:45"] }, (play) => {
  play("1,000 turns with ShedLock, in other time zones, do not overlap", async (ground) => {
    await init(ground.admin, { shedlock: "shedlock" });
    await takeTurns(onGround(ground), 1_000);
  });

  play(
    "1,000 turns of ShedLock's and of three programs, two with skewed clocks",
    async (ground) => {
      await meetSkewed(await skewGround(ground, "shedlock"), 250);
    },
  );
});
