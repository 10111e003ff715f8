import assert from "node:assert/strict";
import { test } from "node:test";
import { NASTY_NAMES } from "../../../conformance/laws/names.js";
import { mintGrantId } from "../../../core/holding/grant-id.js";
import { LAYOUTS, leftName, markerName, tombstoneName } from "../layout.js";
import { readRecord, tokenOf } from "../node-record.js";
import { hashOf, locationOf, pathOf, resourceOf } from "../paths.js";
import { blockers, isCancelled, markerOf, readQueue, wouldWait } from "./queue.js";

const layout = LAYOUTS.holdfast;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what ZooKeeper refuses
const REFUSED = /^\.{0,2}$|[/\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]/;
let made = 0;

/** "x" is exclusive, "s" shared without a limit, "s2" with a limit of two. */
function names(...kinds: string[]): string[] {
  return kinds.map((kind, i) => {
    const hash = (made++).toString(16).padStart(32, "0");
    const limit = kind === "x" ? null : Number(kind.slice(1)) || null;
    const mode = kind === "x" ? "exclusive" : "shared";
    return layout.stem({ mode, limit }, hash) + String(i).padStart(10, "0");
  });
}

function waitsFor(...kinds: string[]): number[] {
  const { members } = readQueue(names(...kinds).reverse(), layout);
  return blockers(members, members.length - 1).map(({ number }) => number);
}

test("an exclusive waiter waits for its predecessor only", () => {
  assert.deepEqual(waitsFor("x"), []);
  assert.deepEqual(waitsFor("x", "x", "x"), [1]);
  assert.deepEqual(waitsFor("s", "s", "x"), [1]);
});

test("a reader waits for the nearest writer before it, and for no reader", () => {
  assert.deepEqual(waitsFor("s", "s", "s"), []);
  assert.deepEqual(waitsFor("x", "s", "x", "s", "s"), [2]);
});

test("a waiter with limit n waits for the n members before it", () => {
  assert.deepEqual(waitsFor("s2", "s2"), []);
  assert.deepEqual(waitsFor("s2", "s2", "s2"), [0, 1]);
  assert.deepEqual(waitsFor("s2", "s2", "s2", "s2"), [1, 2]);
  assert.deepEqual(waitsFor("x", "s2", "s2", "s2"), [0]);
});

test("the holders are the eligible members at the head of the queue", () => {
  const holding = (...kinds: string[]) => readQueue(names(...kinds), layout).holding;
  assert.equal(holding(), 0);
  assert.equal(holding("x", "s"), 1);
  assert.equal(holding("s", "s", "x", "s"), 2);
  assert.equal(holding("s2", "s2", "s2"), 2);
});

test("the queue keeps its order when the servers' numbers go around", () => {
  const hash = "0".repeat(31);
  const queue = readQueue(
    [
      `x-${hash}1--2147483648`,
      `x-${hash}2-2147483647`,
      `x-${hash}3--2147483647`,
      `x-${hash}4-2147483646`,
    ],
    layout,
  );
  assert.deepEqual(
    queue.members.map(({ number }) => number),
    [2147483646, 2147483647, -2147483648, -2147483647],
  );
});

test("the queue finds markers without a holder, and tombstones", () => {
  const [holder = ""] = names("x");
  const { hash, number } = layout.read(holder)!;
  const own = { hash, number, czxid: 9n };
  const markers = [
    markerName(5, own),
    markerName(7, { ...own, hash: hashOf("other") }),
    markerName(8, { ...own, number: -2147483648 }),
  ];
  const queue = readQueue([holder, ...markers, tombstoneName("f".repeat(32))], layout);
  // The last marker belongs to an earlier grant of the same claim.
  assert.deepEqual(
    queue.orphans.map(({ lockDelayMs }) => lockDelayMs),
    [7, 8],
  );
  assert.equal(markerOf(queue, "/resource", queue.members[0]!), `/resource/${markers[0]}`);
  assert.equal(isCancelled(queue, "f".repeat(32)), true);
  assert.equal(isCancelled(queue, hash), false);
  assert.equal(wouldWait(queue, "shared", null), true);
});

test("a grant that was left behind has the place of its holder", () => {
  const [holder = "", next = ""] = names("x", "x");
  const around = `s3-${"a".repeat(32)}--2147483648`;
  for (const name of [holder, around]) {
    const own = layout.read(name)!;
    const left = layout.read(leftName(name, 0x5_0000_0001n))!;
    assert.deepEqual({ ...left, name, left: null }, own);
    assert.equal(left.left, 0x5_0000_0001n);
  }
  const queue = readQueue([next, leftName(holder, 7n)], layout);
  assert.deepEqual([queue.holding, queue.members[1]!.name], [1, next]);
  const { hash } = layout.read(holder)!;
  assert.equal(isCancelled(queue, hash), true, "its claim may not enter again");
  // A left grant may be over, so a claim must ask. A waiter behind it blocks the claim.
  assert.equal(wouldWait(queue, "exclusive", null), true);
  assert.equal(wouldWait(readQueue([leftName(holder, 7n)], layout), "exclusive", null), false);
});

test("the layouts read the names of other libraries", () => {
  const kazoo = LAYOUTS.kazoo.read("d5e4c8a1b2c34d5e8f9a0b1c2d3e4f5a__lock__0000000012");
  assert.deepEqual([kazoo?.number, kazoo?.mode], [12, "exclusive"]);
  const curator = LAYOUTS.curator.read("_c_d5e4c8a1-b2c3-4d5e-8f9a-0b1c2d3e4f5a-lock-0000000007");
  assert.deepEqual([curator?.number, curator?.hash], [7, "d5e4c8a1b2c34d5e8f9a0b1c2d3e4f5a"]);
  for (const other of ["lock-0000000003", "x-lock-0000000003"]) {
    assert.equal(LAYOUTS.curator.read(other)?.number, 3);
  }
  for (const { stem, read } of Object.values(LAYOUTS)) {
    const hash = hashOf(mintGrantId());
    const name = `${stem({ mode: "exclusive", limit: null }, hash)}0000000004`;
    assert.equal(read(name)?.hash, hash);
    assert.equal(read("gone-0000000004"), null);
  }
});

test("every name has a path of its own, which ZooKeeper accepts and which can be decoded", () => {
  for (const location of [
    locationOf("", ""),
    locationOf("/a", "b/c-"),
    locationOf("", "holdfast/"),
  ]) {
    const paths = new Set<string>();
    for (const name of NASTY_NAMES) {
      const path = pathOf(location, name);
      paths.add(path);
      const child = path.slice(location.folder.length + 1);
      assert.equal(resourceOf(location, child), name);
      assert.doesNotMatch(child, REFUSED);
    }
    assert.equal(paths.size, NASTY_NAMES.length);
  }
  assert.equal(pathOf(locationOf("", ""), "zookeeper"), "/%7Aookeeper");
  assert.equal(resourceOf(locationOf("", "a-"), "b-c"), null);
  assert.equal(resourceOf(locationOf("", ""), "%zz"), null);
});

test("a token has 63 bits as long as the epoch has 21", () => {
  assert.equal(tokenOf(0x5_0000_0001n), 0x5_0000_0001n * 1024n);
  assert.ok(tokenOf(2n ** 53n - 1n) + 1023n < 2n ** 63n);
  assert.throws(() => tokenOf(2n ** 53n), { code: "ENGINE" });
});

test("the data of another library is the label", () => {
  const { label, mode, tokens, revoked } = readRecord(Buffer.from("host-1 (pid 7)"));
  assert.deepEqual([label, mode, tokens, revoked], ["host-1 (pid 7)", "exclusive", 1, false]);
  assert.equal(readRecord(Buffer.from("[1]")).label, "[1]");
});
