import { checkMany } from "../../../../test-support/sql/list.fixture.js";
import { listGround } from "../support/list.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({}, (play) => {
  play("a list over 100,000 names is linear, locks no row and keeps nothing", (ground) =>
    checkMany(listGround(ground), 100_000),
  );
});
