// Clients whose clocks are hours off, in processes and sessions of other time zones.
import { meetSkewed } from "../../../../test-support/sql/skew.fixture.js";
import { init } from "../../index.js";
import { skewServer } from "../support/skew.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({ args: ["--default-time-zone=+05:45"] }, (it) => {
  it("clocks and zones of clients change nothing in our rows", async (server) => {
    await meetSkewed(await skewServer(server, "rows"), 15);
  });

  it("clocks and zones of clients change nothing between ShedLock and us", async (server) => {
    await init(server.admin, { shedlock: "shedlock" });
    await meetSkewed(await skewServer(server, "shedlock"), 15);
  });

  it("clocks and zones of clients change nothing in a table of ShedLock's with TIMESTAMP columns", async (server) => {
    await server.admin.query(`CREATE TABLE zoned (name VARCHAR(64), lock_until TIMESTAMP(3) NULL,
      locked_at TIMESTAMP(3) NULL, locked_by VARCHAR(255), PRIMARY KEY (name))`);
    const tables = { prefix: "zoned_", shedlock: "zoned" };
    await init(server.admin, tables);
    await meetSkewed(await skewServer(server, "shedlock", tables), 15);
  });
});
