import { after, before, describe, it } from "node:test";
import { checkLaws } from "../../../../conformance/index.js";
import { Lane, type Servers } from "./harness.fixture.js";

// These laws look at what keeps this process alive, or they restart the servers. So they run alone.
const DIRECT = /^L10\./;
const ALONE = /^(L12|L6\.10)\b/;

/** Laws mostly wait, so they run in a few lanes at once, each with servers of its own. */
export function checkInLanes(name: string, lanes: number, start: () => Promise<Servers>): void {
  checkAll(name, lanes, (_, direct) => new Lane(start, { direct }));
}

/** The same for a cluster: the lanes share the servers, and each has a prefix of its own. */
export function checkOnShared(name: string, lanes: number, start: () => Promise<Servers>): void {
  let servers: Promise<Servers> | null = null;
  before(() => {
    servers = start();
    return servers;
  });
  after(async () => (await servers)?.stop());
  const shared = async () => ({ ...(await servers!), stop: async () => {} });
  checkAll(name, lanes, (lane, direct) => new Lane(shared, { direct, prefix: `lane${lane}/` }));
}

type LaneOf = (lane: number, direct: boolean) => Lane;
type Run = () => Promise<void>;

function checkAll(name: string, count: number, laneOf: LaneOf): void {
  describe(name, { concurrency: count }, () => {
    const lanes = Array.from({ length: count }, (_, i) => laneOf(i, false));
    before(() => Promise.all(lanes.map((lane) => lane.start())));
    after(() => Promise.all(lanes.map((lane) => lane.stop())));
    const isShared = (title: string) => !DIRECT.test(title) && !ALONE.test(title);
    const laws = lanes.map((lane) => lawsOf(lane, isShared));
    // No more laws run at a time than there are lanes, so one lane is always free.
    const free = lanes.map((_, i) => i);
    for (const title of laws[0]!.keys()) {
      it(title, async () => {
        const lane = free.shift()!;
        await laws[lane]!.get(title)!().finally(() => free.push(lane));
      });
    }
  });
  check(`${name}, alone`, laneOf(count, false), (title) => ALONE.test(title));
  check(`${name}, alone and without relays`, laneOf(count, true), (title) => DIRECT.test(title));
}

function check(name: string, lane: Lane, isAsked: (title: string) => boolean): void {
  describe(name, { concurrency: 1 }, () => {
    before(() => lane.start());
    after(() => lane.stop());
    for (const [title, run] of lawsOf(lane, isAsked)) it(title, run);
  });
}

function lawsOf(lane: Lane, isAsked: (title: string) => boolean): Map<string, Run> {
  const laws = new Map<string, Run>();
  checkLaws(lane.harness(), (title, run) => isAsked(title) && laws.set(title, run));
  return laws;
}
