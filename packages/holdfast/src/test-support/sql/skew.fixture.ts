// Clients with other clocks and time zones must not change anything, on any SQL database.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { ShiftedClock } from "@holdfast/servers";
import type { Locks } from "../../locks.js";
import type { ShedLock } from "./shedlock.fixture.js";
import {
  type Recorder,
  type SkewedClient,
  type Step,
  TURNS_MS,
  takeTurns,
} from "./skewed-client.child.js";

const HOUR_MS = 3_600_000;
const TTL_MS = 10_000;
const SHORT_MS = 500;
// ShedLock's columns have milliseconds, and so have values computed from them.
const ROUNDING_MS = 3;

/** What the database says about a held resource, by its own clock, in UTC. */
export interface Times {
  readonly leftMs: number;
  /** From the row in ShedLock's table; null if there is none. */
  readonly shedlock: { readonly leftMs: number; readonly ageMs: number } | null;
}

export interface SkewServer {
  /** Distant time zones, in this database's syntax. */
  readonly zones: readonly [string, string];
  /** Null unless ShedLock's table is shared. */
  readonly theirs: ShedLock | null;
  locks(): Locks;
  start(zone: string, env: Readonly<Record<string, string>>): SkewedClient;
  times(resource: string): Promise<Times>;
  readonly record: Recorder;
  /** In the order of recording. */
  history(resource: string): Promise<readonly Step[]>;
}

/** One client is hours ahead and one is hours behind, in distant time zones. */
export async function meetSkewed(server: SkewServer, turns: number): Promise<void> {
  using fast = new ShiftedClock();
  using slow = new ShiftedClock();
  fast.set(7 * HOUR_MS);
  slow.set(-9 * HOUR_MS);
  const [east, west] = server.zones;
  await using ahead = server.start(east, { ...fast.env, TZ: "Asia/Kolkata" });
  await using behind = server.start(west, { ...slow.env, TZ: "America/Los_Angeles" });
  await expectElsewhere(ahead, 7 * HOUR_MS, east);
  await expectElsewhere(behind, -9 * HOUR_MS, west);
  const locks = server.locks();
  await allOf([
    expectKeptOut(server, locks, ahead, "held-ahead"),
    expectKeptOut(server, locks, behind, "held-behind"),
  ]);
  await allOf([
    expectHolds(server, locks, ahead, "holds-ahead", () => fast.set(-5 * HOUR_MS)),
    expectHolds(server, locks, behind, "holds-behind", () => slow.set(5 * HOUR_MS)),
  ]);
  fast.set(7 * HOUR_MS);
  slow.set(-9 * HOUR_MS);
  await expectApart(server, locks, { ahead, behind }, turns);
  // The sessions belong to the user: what a call changes in them is restored.
  await expectElsewhere(ahead, 7 * HOUR_MS, east);
  await expectElsewhere(behind, -9 * HOUR_MS, west);
  await allOf([
    expectSuccession(server, locks, ahead, "ends-ahead"),
    expectSuccession(server, locks, behind, "ends-behind"),
  ]);
}

/** Without this check the rest would prove nothing. */
async function expectElsewhere(client: SkewedClient, offsetMs: number, zone: string) {
  const { wallMs, minutesBehindUtc, sessionZone } = await client.ask("where");
  assert.ok(Math.abs(wallMs - Date.now() - offsetMs) < HOUR_MS / 2, `its clock: ${wallMs}`);
  assert.notEqual(minutesBehindUtc, new Date().getTimezoneOffset());
  assert.equal(sessionZone, zone);
}

/**
 * A lease of another client stays held until its end, however late it is on this client's clock.
 */
async function expectKeptOut(server: SkewServer, locks: Locks, client: SkewedClient, name: string) {
  const lease = await locks.acquire(name, { ttlMs: TTL_MS });
  assert.equal(await client.ask("tryAcquire", name, {}), null, "the client took a live lease");
  await lease.release();
  const token = await client.ask("tryAcquire", name, {});
  assert.ok(token !== null, "a released lock is not free for the client");
  assert.ok(BigInt(token) > lease.token, `${token} after ${lease.token}`);
  assert.equal(await client.ask("release"), "released");
  const { theirs } = server;
  if (theirs === null) return;
  assert.equal(
    await theirs.lock(name, TTL_MS),
    true,
    "a lock that the client released is not free for ShedLock",
  );
  assert.equal(await client.ask("tryAcquire", name, {}), null, "the client got in beside ShedLock");
  await theirs.unlock(name);
  const waiting = client.ask("acquire", name, {});
  assert.ok(BigInt(await waiting) > BigInt(token));
  assert.equal(await client.ask("release"), "released");
}

/**
 * The client's lease lives for its ttl, counted from its grant and its renewals, also when its
 * clock jumps.
 */
async function expectHolds(
  server: SkewServer,
  locks: Locks,
  client: SkewedClient,
  name: string,
  jump: () => void,
) {
  const keptOut = async () => {
    assert.equal(await locks.tryAcquire(name), null, "the client's live lease was taken");
    if (server.theirs !== null) assert.equal(await server.theirs.lock(name, TTL_MS), false);
  };
  const grantedAt = performance.now();
  await client.ask("acquire", name, { ttlMs: TTL_MS, renew: false });
  await expectLife(server, name, grantedAt, grantedAt);
  await keptOut();
  jump();
  assert.equal(await client.ask("held"), true, "the client lost its lease when its clock jumped");
  const renewedAt = performance.now();
  await client.ask("renew");
  await expectLife(server, name, renewedAt, grantedAt);
  await keptOut();
  assert.equal(await client.ask("release"), "released");
}

/** The ttl began after `setAt`, and the grant after `grantedAt`. */
async function expectLife(server: SkewServer, name: string, setAt: number, grantedAt: number) {
  const { leftMs, shedlock } = await server.times(name);
  const [setAgoMs, agoMs] = [performance.now() - setAt, performance.now() - grantedAt];
  const lives = (ms: number) => ms <= TTL_MS + ROUNDING_MS && ms >= TTL_MS - setAgoMs - ROUNDING_MS;
  assert.ok(lives(leftMs), `${leftMs} of ${TTL_MS} ms are left after at most ${setAgoMs}`);
  assert.equal(shedlock === null, server.theirs === null);
  if (shedlock === null) return;
  assert.ok(lives(shedlock.leftMs), `lock_until is ${shedlock.leftMs} ms ahead`);
  const { ageMs } = shedlock;
  assert.ok(ageMs >= -ROUNDING_MS && ageMs <= agoMs + ROUNDING_MS, `locked_at: ${ageMs} ms ago`);
}

/** All contend for one name. The database numbers each entry and exit. */
async function expectApart(
  server: SkewServer,
  locks: Locks,
  clients: Readonly<Record<string, SkewedClient>>,
  turns: number,
) {
  const { theirs, record } = server;
  const others = Object.entries(clients);
  await allOf([
    takeTurns(locks, record, "turns", "ordinary", turns),
    ...others.map(([who, client]) => client.ask("turns", "turns", who, turns)),
    theirs === null ? null : takeTheirs(theirs, record, turns),
  ]);
  const steps = await server.history("turns");
  const contenders = others.length + (theirs === null ? 1 : 2);
  assert.equal(steps.length, 2 * turns * contenders, "everybody had every turn");
  let highest = 0n;
  for (let i = 0; i < steps.length; i += 2) {
    const [came, went] = [steps[i]!, steps[i + 1]!];
    assert.deepEqual(went, { ...came, what: "out" }, "two holders overlap");
    assert.equal(came.what, "in");
    if (came.who === "shedlock") continue;
    assert.ok(came.token > highest, `${came.who} got ${came.token} after ${highest}`);
    highest = came.token;
  }
}

async function takeTheirs(theirs: ShedLock, record: Recorder, turns: number): Promise<void> {
  const deadline = performance.now() + TURNS_MS;
  for (let done = 0; done < turns; ) {
    assert.ok(performance.now() < deadline, `ShedLock had ${done} turns of ${turns}`);
    if (await theirs.lock("turns", 60_000)) {
      await record("turns", { who: "shedlock", what: "in", token: 0n });
      await sleep(1);
      await record("turns", { who: "shedlock", what: "out", token: 0n });
      await theirs.unlock("turns");
      done++;
    }
    await sleep(2);
  }
}

/**
 * A lease that nobody releases ends with its ttl, whichever of the two clients is dead and
 * whichever waits.
 */
async function expectSuccession(
  server: SkewServer,
  locks: Locks,
  client: SkewedClient,
  name: string,
) {
  const once = { ttlMs: SHORT_MS, renew: false, waitMs: 35_000 };
  const [first, token] = await notBefore(
    () => locks.acquire(name, once),
    () => client.ask("acquire", name, once),
  );
  assert.ok(BigInt(token) > first.token, `${token} after ${first.token}`);
  assert.equal(first.held, false);
  const [last, next] = await notBefore(
    async () => {
      const granted = await client.ask("acquire", `${name}-dead`, once);
      await client.kill();
      return granted;
    },
    () => locks.acquire(`${name}-dead`, once),
  );
  assert.ok(next.token > BigInt(last), `${next.token} after ${last}`);
  await next.release();
  if (server.theirs === null) return;
  // The dead client still holds the first of the two names, or did until a moment ago.
  const deadline = performance.now() + 60_000;
  while (!(await server.theirs.lock(name, TTL_MS))) {
    assert.ok(performance.now() < deadline, "ShedLock never got what a dead client held");
    await sleep(10);
  }
}

/** Waits for all, also when one of them fails. */
async function allOf(work: readonly (Promise<void> | null)[]): Promise<void> {
  for (const ended of await Promise.allSettled(work)) {
    if (ended.status === "rejected") throw ended.reason;
  }
}

async function notBefore<A, B>(hold: () => Promise<A>, succeed: () => Promise<B>): Promise<[A, B]> {
  const from = performance.now();
  const held = await hold();
  const successor = await succeed();
  const tookMs = performance.now() - from;
  assert.ok(tookMs >= SHORT_MS - ROUNDING_MS, `a lease of ${SHORT_MS} ms ended after ${tookMs}`);
  return [held, successor];
}
