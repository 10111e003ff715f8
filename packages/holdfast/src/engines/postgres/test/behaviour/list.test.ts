import { checkPrefix } from "../../../../test-support/sql/list.fixture.js";
import { listServer } from "../support/list.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({}, (it) => {
  it("a list with a literal prefix reads only the names that have it", (server) =>
    checkPrefix(listServer(server)));
});
