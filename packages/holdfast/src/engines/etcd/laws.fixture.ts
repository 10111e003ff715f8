import { after, before, describe, it } from "node:test";
import { checkLaws } from "../../conformance/index.js";
import { Lane, type Servers } from "./harness.fixture.js";

// What keeps this process alive is looked at by these, so nothing else may happen meanwhile.
const ALONE = /^L1[02]\./;

/** The laws mostly wait; so they are asked in a few lanes, each with servers of its own. */
export function checkInLanes(name: string, lanes: number, start: () => Promise<Servers>): void {
  describe(name, { concurrency: lanes }, () => {
    for (let lane = 0; lane < lanes; lane++) {
      let law = 0;
      const isAsked = (title: string) => !ALONE.test(title) && law++ % lanes === lane;
      check(`${name}, lane ${lane}`, new Lane(start), isAsked);
    }
  });
  check(`${name}, alone`, new Lane(start), (title) => /^L12\./.test(title));
  check(`${name}, alone and without relays`, new Lane(start, true), (title) =>
    /^L10\./.test(title),
  );
}

function check(name: string, lane: Lane, isAsked: (title: string) => boolean): void {
  describe(name, { concurrency: 1 }, () => {
    before(() => lane.start());
    after(() => lane.stop());
    checkLaws(lane.harness(), (title, run) => isAsked(title) && it(title, run));
  });
}
