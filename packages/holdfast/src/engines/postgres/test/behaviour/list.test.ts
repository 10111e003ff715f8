import { checkPrefix } from "../../../../test-support/sql/list.fixture.js";
import { listGround } from "../support/list.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({}, (play) => {
  play("a list with a literal prefix reads the names that have it, and no other", (ground) =>
    checkPrefix(listGround(ground)),
  );
});
