import { checkCrowd } from "../../../../test-support/sql/crowd.fixture.js";
import { describeWithMysql } from "../support/test-server.fixture.js";

describeWithMysql({}, (it) => {
  it("2,000 readers and 2,000 strict waiters are served, and a bystander keeps its lease", (server) =>
    checkCrowd(() => server.locks(), 2_000));
});
