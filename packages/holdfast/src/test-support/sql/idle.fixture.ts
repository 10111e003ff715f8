// Unused rows are removed by themselves, on any SQL database, and no others are.
import assert from "node:assert/strict";
import type { Claim, Engine } from "../../engine.js";
import { UsageError } from "../../errors.js";
import { now as callNow } from "../call.fixture.js";
import { claim } from "../claim.fixture.js";

const IDLE_MS = 5_000;
const DAY_MS = 86_400_000;
const SHORTEST_MS = 1_000;
const HOUR_MS = 3_600_000;
const TTL_MS = 30_000;
const COUNT = 10;
// A few operations in a hundred sweep. That none of so many does is practically impossible.
const MOST_OPERATIONS = 5_000;
const A_ROUND = 100;

export type TableName = "resources" | "grants" | "waiters" | "tombstones";
export type Rows = Readonly<Record<TableName, number>>;

export interface IdleServer {
  engine(idleMs: number): Engine;
  /**
   * Ages the rows of resources whose names have this prefix; all rows of tombstones, which have no
   * resource.
   */
  age(table: TableName, prefix: string, ms: number): Promise<unknown>;
  /** Counts rows of resources whose names have this prefix, and all tombstones. */
  rows(prefix: string): Promise<Rows>;
  /** One sweep, as an engine with this idleMs runs it. */
  sweep(idleMs: number): Promise<unknown>;
}

export function testIdle(
  it: (title: string, part: (server: IdleServer) => Promise<void>) => void,
  roundsOfNames: number,
): void {
  it("released and idle resources leave no row behind after idleMs", expectNothingIdle);
  it("the shortest idleMs cuts off no holder or waiter", expectNobodyCutOff);
  it("names that are used only once do not accumulate", (server) =>
    expectNoBacklog(server, roundsOfNames));
}

/** Checks the option, and the parameter of the URL for every kind of hold. */
export function expectIdleChecked(
  make: (idleMs: number) => unknown,
  fromUrl: (query: string) => number,
  holds: readonly string[],
): void {
  for (const idleMs of [999, 1_000.5, 0, -1, Number.NaN, Infinity, "5000" as never]) {
    assert.throws(() => make(idleMs), UsageError, String(idleMs));
  }
  assert.equal(fromUrl(""), 60_000);
  for (const hold of holds) assert.equal(fromUrl(`?idleMs=2500&hold=${hold}`), 2_500);
  for (const wrong of ["", "999", "1m", "1e999"]) {
    assert.throws(() => fromUrl(`?idleMs=${wrong}`), UsageError, wrong);
  }
  assert.throws(() => fromUrl("?idleMs=soon"), /^UsageError: idleMs is "soon"; it must be a whole/);
}

/** Only ordinary operations on another resource clean up. */
export async function expectNothingIdle(server: IdleServer): Promise<void> {
  // The engine that leaves these rows would keep them for a day. The other engine's idleMs is
  // shorter, and decides.
  const [patient, engine] = [server.engine(DAY_MS), server.engine(IDLE_MS)];
  const held = claim("idle-held", { ttlMs: 600_000 });
  const holds = await patient.tryAcquire(held, now());
  await patient.queue!.enqueue(claim("idle-held", { ttlMs: TTL_MS }), now());
  for (let i = 0; i < COUNT; i++) {
    const released = claim(`idle-released-${i}`, { ttlMs: TTL_MS });
    await patient.tryAcquire(released, now());
    await patient.release([{ ...released, tombstoneMs: i % 2 === 0 ? 0 : TTL_MS }], now());
    await patient.tryAcquire(claim(`idle-expired-${i}`, { ttlMs: TTL_MS }), now());
  }
  await patient.queue!.enqueue(claim("idle-expired-0", { ttlMs: TTL_MS }), now());
  const before = await server.rows("idle-");
  assert.ok(before.resources > COUNT, `${before.resources} resources`);
  const { resources } = before;
  assert.deepEqual(before, { resources, grants: COUNT + 1, waiters: 2, tombstones: COUNT / 2 });
  const agedMs = TTL_MS + IDLE_MS + 1_000;
  for (const table of ["resources", "waiters", "tombstones"] as const) {
    await server.age(table, "idle-", agedMs);
  }
  await server.age("grants", "idle-expired-", agedMs);
  await server.sweep(2 * agedMs);
  const { tombstones, ...kept } = await server.rows("idle-");
  assert.deepEqual(
    kept,
    { resources, grants: COUNT + 1, waiters: 2 },
    "idle rows are kept until their time",
  );
  assert.equal(tombstones, 0, "tombstones have their own time");
  const left = { resources: 1, grants: 1, waiters: 0, tombstones: 0 };
  for (let operations = 0; ; operations += 2) {
    const usual = claim("usual", { ttlMs: TTL_MS });
    await engine.tryAcquire(usual, now());
    await engine.release([{ ...usual, tombstoneMs: 0 }], now());
    const rows = await server.rows("idle-");
    if (Object.entries(left).every(([table, count]) => rows[table as TableName] === count)) break;
    assert.ok(operations < MOST_OPERATIONS, `still there: ${JSON.stringify(rows)}`);
  }
  assert.equal(await isGood(engine, held, holds), true, "what is held is not idle");
}

/** The shortest possible idleMs, with sweeps at the worst moments. */
export async function expectNobodyCutOff(server: IdleServer): Promise<void> {
  const engine = server.engine(SHORTEST_MS);
  const sweep = async () => {
    for (let i = 0; i < 3; i++) {
      await server.age("resources", "cut-", HOUR_MS);
      await server.sweep(SHORTEST_MS);
    }
  };

  // A waiter whose process was paused for longer than idleMs, but less than ten seconds.
  const [holder, first, second] = [1, 2, 3].map(() => claim("cut-queue", { ttlMs: 600_000 })) as [
    Claim,
    Claim,
    Claim,
  ];
  await engine.tryAcquire(holder, now());
  await engine.queue!.enqueue(first, now());
  await server.age("waiters", "cut-queue", 8_000);
  await engine.queue!.enqueue(second, now());
  await sweep();
  const [stands] = await engine.queue!.heartbeat([first], now());
  assert.ok(stands?.kind === "queued" && stands.position === 0, `it is ${stands?.kind}`);

  // The same, while the holder releases and there is no other waiter.
  await engine.queue!.withdraw(second, now());
  await server.age("waiters", "cut-queue", 8_000);
  await engine.release([{ ...holder, tombstoneMs: 0 }], now());
  await sweep();
  assert.equal((await server.rows("cut-queue")).resources, 1, "somebody waits for it");
  const [turn] = await engine.queue!.heartbeat([first], now());
  assert.equal(turn?.kind, "granted");

  // A lost holder in its lock-delay, with a waiter behind it that makes the sweep look closer.
  await engine.tryAcquire({ ...claim("cut-delay", { ttlMs: 1_000 }), lockDelayMs: 20_000 }, now());
  await engine.queue!.enqueue(claim("cut-delay", { ttlMs: TTL_MS }), now());
  await server.age("waiters", "cut-delay", 8_000);
  await server.age("grants", "cut-delay", 5_000);
  await sweep();
  assert.equal(
    (await engine.tryAcquire(claim("cut-delay", { ttlMs: TTL_MS }), now())).kind,
    "busy",
  );
  assert.ok(
    (await engine.inspect("cut-delay", now())).closedMs > 0,
    "a lock-delay keeps it closed",
  );

  // A lease that is renewed, whose row is far older than idleMs.
  const kept = claim("cut-kept", { ttlMs: TTL_MS });
  const holds = await engine.tryAcquire(kept, now());
  for (let i = 0; i < 2; i++) {
    await sweep();
    assert.equal((await engine.renew([kept], now()))[0]?.kind, "renewed");
    assert.equal(await isGood(engine, kept, holds), true);
    await server.age("grants", "cut-kept", TTL_MS - 2_000);
  }
  await sweep();
  assert.equal((await engine.renew([kept], now()))[0]?.kind, "renewed", "in its last seconds");

  // A claim that was released before it arrived.
  const late = claim("cut-late", { ttlMs: TTL_MS });
  await engine.release([{ ...late, tombstoneMs: TTL_MS }], now());
  await sweep();
  assert.equal((await engine.tryAcquire(late, now())).kind, "gone");
}

/**
 * Names used once, by claims that nobody releases: a sweep looks at each twice before it can remove
 * it.
 */
async function expectNoBacklog(server: IdleServer, rounds: number): Promise<void> {
  const engine = server.engine(SHORTEST_MS);
  const made = rounds * A_ROUND;
  for (let round = 0; round < rounds; round++) {
    const names = Array.from({ length: A_ROUND }, (_, i) => `once-${round}-${i}`);
    await Promise.all(
      names.map((name) => engine.tryAcquire(claim(name, { ttlMs: TTL_MS }), now())),
    );
    await server.age("resources", "once-", HOUR_MS);
    await server.age("grants", "once-", HOUR_MS);
  }
  const { resources, grants } = await server.rows("once-");
  const most = made / 4;
  assert.ok(resources < most && grants < most, `${resources} of ${made} resources are still there`);
}

async function isGood(engine: Engine, { resource, mode }: Claim, holds: { readonly kind: string }) {
  assert.ok(holds.kind === "granted" && "token" in holds);
  return engine.check({ resource, mode, token: holds.token as bigint }, now());
}

const now = () => callNow(10_000);
