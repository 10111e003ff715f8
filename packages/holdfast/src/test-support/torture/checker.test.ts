import assert from "node:assert/strict";
import { test } from "node:test";
import { violations } from "./checker.fixture.js";
import type { LogEntry, Reading } from "./history.fixture.js";

const PLAIN = { name: "plain", limit: 0, lockDelayMs: 0 };
const CATALOGUE = { name: "catalogue", limit: Infinity, lockDelayMs: 0 };
const PERMITS = { name: "permits", limit: 2, lockDelayMs: 0 };

/**
 * A lease that was observed as held at each of these instants, and believed for a second from each.
 */
function held(
  token: number,
  at: readonly number[],
  more: Partial<Extract<LogEntry, { e: "held" }>> = {},
): LogEntry[] {
  return at.map((instant) => ({
    ...{ e: "held", lease: `lease ${token}`, resource: "plain", mode: "exclusive" },
    ...{ token: String(token), from: instant, to: instant + 0.1, until: instant + 1_000, ...more },
  }));
}

function reading(at: number, grants: Reading["grants"]): Reading {
  return { resource: "plain", from: at, to: at + 1, grants };
}

test("successive leases with rising tokens are no violation", () => {
  const entries = [...held(1, [0, 10, 20]), ...held(2, [30, 40]), ...held(5, [41, 50])];
  assert.deepEqual(violations(entries, [], [PLAIN]), []);
});

test("two exclusive leases that were held at one instant are found", () => {
  const found = violations([...held(1, [0, 50]), ...held(2, [40, 60])], [], [PLAIN]);
  assert.match(found.join(), /token 1 and token 2 held for 9\.9 ms/);
});

test("an exclusive lease beside a shared one is found, and shared ones among themselves are not", () => {
  const on = { resource: "catalogue" };
  const readers = [
    ...held(1, [0, 50], { ...on, mode: "shared" }),
    ...held(2, [10, 60], { ...on, mode: "shared" }),
  ];
  assert.deepEqual(violations(readers, [], [CATALOGUE]), []);
  const found = violations([...readers, ...held(3, [55, 70], on)], [], [CATALOGUE]);
  assert.match(found.join(), /token 2 and token 3/);
});

test("one more than the limit is found", () => {
  const more = { resource: "permits", mode: "shared" } as const;
  const three = [1, 2, 3].flatMap((token) => held(token, [token, 50], more));
  assert.match(violations(three, [], [PERMITS]).join(), /3 hold at once where 2 may/);
  assert.deepEqual(violations(three.slice(2), [], [PERMITS]), []);
});

test("a token that repeats or goes back is found", () => {
  const again = held(2, [30, 40], { lease: "another" });
  assert.match(violations([...held(2, [0, 10]), ...again], [], [PLAIN]).join(), /2 came after 2/);
  const back = [...held(2, [0, 10]), ...held(1, [30, 40])];
  assert.match(violations(back, [], [PLAIN]).join(), /token 1 came after 2/);
});

test("a belief beyond the backend's record is found", () => {
  const entries = held(1, [0, 100]);
  const enough = reading(50, [{ token: 1n, remainingMs: 960 }]);
  assert.deepEqual(violations(entries, [enough], [PLAIN]), []);
  const tooLittle = reading(50, [{ token: 1n, remainingMs: 300 }]);
  assert.match(violations(entries, [tooLittle], [PLAIN]).join(), /believed 649 ms more/);
  assert.match(violations(entries, [reading(50, [])], [PLAIN]).join(), /had no such grant/);
});

test("a token of a range is matched with its grant, and a shortened lease is not measured", () => {
  const short = reading(50, [{ token: 1n, remainingMs: 300 }]);
  assert.match(violations(held(900, [0, 100]), [short], [PLAIN]).join(), /token 900 believed/);
  const shrunk: LogEntry[] = [{ e: "shrinks", lease: "lease 1" }, ...held(1, [0, 100])];
  assert.deepEqual(violations(shrunk, [short], [PLAIN]), []);
});

test("a token belongs to the nearest grant below it", () => {
  const two = reading(50, [
    { token: 1n, remainingMs: 300 },
    { token: 9n, remainingMs: 960 },
  ]);
  assert.deepEqual(violations(held(9, [0, 100]), [two], [PLAIN]), []);
});

test("a reading before the lease or after it proves nothing", () => {
  const readings = [reading(0, []), reading(200, [])];
  assert.deepEqual(violations(held(1, [50, 100]), readings, [PLAIN]), []);
});

test("two leases with one token are found, also where both are shared", () => {
  const on = { resource: "catalogue", mode: "shared" } as const;
  const twins = [...held(4, [0, 50], on), ...held(4, [10, 60], { ...on, lease: "another" })];
  assert.match(violations(twins, [], [CATALOGUE]).join(), /token 4 was given to 2 leases/);
});

test("a reader whose token is below that of the writer before it is found", () => {
  const on = { resource: "catalogue" };
  const late = held(3, [60, 70], { ...on, mode: "shared" });
  const found = violations([...held(5, [0, 50], on), ...late], [], [CATALOGUE]);
  assert.match(found.join(), /token 3 came after 5/);
});

test("a reader without a grant of its own is found beside a neighbour that has one", () => {
  const on = { resource: "catalogue", mode: "shared" } as const;
  const neighbour = { ...reading(50, [{ token: 1n, remainingMs: 960 }]), resource: "catalogue" };
  const readers = [...held(1, [0, 100], on), ...held(2, [0, 100], on)];
  assert.match(violations(readers, [neighbour], [CATALOGUE]).join(), /token 2 was held, and the/);
});

test("a successor within the lock-delay of a lost lease is found, and one of a released lease is not", () => {
  const delayed = { ...PLAIN, name: "delayed", lockDelayMs: 200 };
  const on = { resource: "delayed" };
  const lost = held(1, [0, 100], on);
  const early = held(2, [1_150, 1_160], on);
  assert.match(
    violations([...lost, ...early], [], [delayed]).join(),
    /token 2 was held 1\d\d ms too early after token 1/,
  );
  assert.deepEqual(violations([...lost, ...held(2, [1_310, 1_320], on)], [], [delayed]), []);
  const released: LogEntry = { e: "gives-back", lease: "lease 1" };
  assert.deepEqual(violations([...lost, released, ...early], [], [delayed]), []);
  const shrunk: LogEntry = { e: "shrinks", lease: "lease 1" };
  assert.deepEqual(violations([...lost, shrunk, ...early], [], [delayed]), []);
});

test("where a process was killed, the lock-delay counts from the last sight of its lease", () => {
  const delayed = { ...PLAIN, name: "delayed", lockDelayMs: 200 };
  const on = { resource: "delayed" };
  const killed: LogEntry[] = [
    { e: "killed", pid: 7 },
    { e: "keeps", lease: "7 1", until: 900 },
    ...held(1, [0, 100], { ...on, lease: "7 1" }),
  ];
  assert.deepEqual(violations([...killed, ...held(2, [310, 320], on)], [], [delayed]), []);
  assert.match(
    violations([...killed, ...held(2, [150, 160], on)], [], [delayed]).join(),
    /token 2 was held 150 ms too early after token 1/,
  );
});

test("a successor before the end of a run's atLeastMs is found", () => {
  const keeps: LogEntry = { e: "keeps", lease: "lease 1", until: 500 };
  const run = [...held(1, [0, 100]), keeps];
  assert.match(
    violations([...run, ...held(2, [300, 310])], [], [PLAIN]).join(),
    /token 2 was held 2\d\d ms too early after token 1/,
  );
  assert.deepEqual(violations([...run, ...held(2, [510, 520])], [], [PLAIN]), []);
});

test("a lease revoked by force is no longer measured, and its neighbours are", () => {
  const on = { resource: "catalogue", mode: "shared" } as const;
  const forced: LogEntry = { e: "forced", resource: "catalogue", token: "1" };
  const reader = held(1, [0, 100], on);
  const writer = held(3, [50, 60], { resource: "catalogue" });
  assert.deepEqual(violations([...reader, forced, ...writer], [], [CATALOGUE]), []);
  const two = [...reader, ...held(2, [0, 100], on)];
  assert.match(violations([...two, forced, ...writer], [], [CATALOGUE]).join(), /token 2 and tok/);
});

test("an error that neither an engine nor the test may cause is found", () => {
  const end = (code: string): LogEntry => ({ e: "ended", code, at: 0 });
  assert.deepEqual(violations([end("BUSY"), end("ENGINE"), end("LEASE_LOST")], [], [PLAIN]), []);
  assert.match(violations([end("CONTRACT")], [], [PLAIN]).join(), /CONTRACT/);
  assert.match(violations([end("USAGE")], [], [PLAIN]).join(), /USAGE/);
});
