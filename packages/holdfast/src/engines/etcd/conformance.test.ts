import { after, before, describe, it } from "node:test";
import { checkLaws } from "../../conformance/index.js";
import { Lane } from "./harness.fixture.js";

// The laws mostly wait; so they are asked in a few lanes, each with a server of its own.
const LANES = 3;
// What keeps this process alive is looked at by these, so nothing else may happen meanwhile.
const ALONE = /^L1[02]\./;

describe("etcd", { concurrency: LANES }, () => {
  for (let lane = 0; lane < LANES; lane++) {
    let law = 0;
    laws(`lane ${lane}`, new Lane(), (title) => !ALONE.test(title) && law++ % LANES === lane);
  }
});

laws("etcd, alone", new Lane(), (title) => /^L12\./.test(title));
laws("etcd, alone and without relays", new Lane(undefined, true), (title) => /^L10\./.test(title));

function laws(name: string, lane: Lane, isAsked: (title: string) => boolean): void {
  describe(name, { concurrency: 1 }, () => {
    before(() => lane.start());
    after(() => lane.stop());
    checkLaws(lane.harness(), (title, run) => isAsked(title) && it(title, run));
  });
}
