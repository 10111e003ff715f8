import { after, before, describe, it } from "node:test";
import { checkLaws } from "../../conformance/index.js";
import { Lane } from "./harness.fixture.js";

// The laws mostly wait; so they are asked in a few lanes, each with a server of its own.
const LANES = 3;

describe("etcd", { concurrency: LANES }, () => {
  for (let lane = 0; lane < LANES; lane++) {
    describe(`lane ${lane}`, { concurrency: 1 }, () => {
      const stage = new Lane();
      before(() => stage.start());
      after(() => stage.stop());
      let law = 0;
      checkLaws(stage.harness(), (title, run) => law++ % LANES === lane && it(title, run));
    });
  }
});
