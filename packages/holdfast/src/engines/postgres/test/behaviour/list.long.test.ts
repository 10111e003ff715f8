import { checkMany } from "../../../../test-support/sql/list.fixture.js";
import { listServer } from "../support/list.fixture.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

describeWithPostgres({}, (it) => {
  it("a list over 100,000 names is linear, locks no row and keeps nothing", (server) =>
    checkMany(listServer(server), 100_000));
});
