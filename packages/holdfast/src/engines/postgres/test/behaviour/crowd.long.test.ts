import { checkCrowd } from "../../../../test-support/sql/crowd.fixture.js";
import { scenes } from "../support/test-server.fixture.js";

scenes({}, (play) => {
  play(
    "2,000 readers and 2,000 strict waiters are served, and a bystander keeps its lease",
    (ground) => checkCrowd(() => ground.locks(), 2_000),
  );
});
