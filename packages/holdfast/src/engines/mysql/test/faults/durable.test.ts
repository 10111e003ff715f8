// An answer is on the disk before it is sent. InnoDB shows a commit to other sessions before its
// log is written, so an answer may depend on another session's commit that a crash would still
// undo.
import assert from "node:assert/strict";
import { after, afterEach } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { innodbLog, isMysql, LogGate } from "@holdfast/servers";
import type { Claim, Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { describeWithMysql, type MysqlTestServer } from "../support/test-server.fixture.js";

const gate = new LogGate(innodbLog());
afterEach(() => gate.open());
after(() => gate[Symbol.dispose]());

// The log is written only when a commit needs it, and not every second. With a binary log, which
// MySQL has by default, nobody sees a commit before it is written.
const args = ["--innodb-flush-log-at-timeout=2700", ...(isMysql() ? ["--disable-log-bin"] : [])];

/** Each answer may report a grant that another session's release has made. */
const ANSWERS: readonly [string, (engine: Engine, waits: Claim) => Promise<{ kind: string }>][] = [
  ["heartbeat", async (engine, waits) => (await engine.queue!.heartbeat([waits], now()))[0]!],
  ["repeated enqueue", (engine, waits) => engine.queue!.enqueue(waits, now())],
  ["repeated acquire", (engine, waits) => engine.tryAcquire(waits, now())],
  ["withdrawal", (engine, waits) => engine.queue!.withdraw(waits, now())],
  [
    "renewal",
    async (engine, waits) => (await engine.renew([{ ...waits, ttlMs: 10_000 }], now()))[0]!,
  ],
];

describeWithMysql({ durable: true, args, env: gate.env }, (it) => {
  it("a heartbeat reports no grant that is made while its commit is written", async (server) => {
    const [ours, other] = [server.engine(), server.engine()];
    const [held, waits] = [claim("a", { ttlMs: 3_000 }), claim("a")];
    await other.tryAcquire(held, now());
    await ours.queue!.enqueue(waits, now());
    gate.close();
    const beating = ours.queue!.heartbeat([waits], now(20_000));
    // For everybody else its transaction is over, but its log is not written.
    await gate.untilWaiting(1);
    await unwritten(server, () => other.release([{ ...held, tombstoneMs: 0 }], now()));
    const [answer] = await letThrough(beating);
    await killed(server);
    if (answer!.kind === "granted") await expectKept(server, waits, answer!.token);
  });

  it("a kill undoes what others have seen but no commit has written", async (server) => {
    const engine = server.engine();
    const held = claim("undone");
    await engine.tryAcquire(held, now());
    await unwritten(server, () => engine.release([{ ...held, tombstoneMs: 0 }], now()));
    assert.equal(await server.count("grants", "resource = 'undone'"), 0);
    await killed(server);
    assert.equal(await server.count("grants", "resource = 'undone'"), 1);
  });

  for (const [name, ask] of ANSWERS) {
    it(`a grant of another session is on the disk when a ${name} reports it`, async (server) => {
      const [ours, other] = [server.engine(), server.engine()];
      const resource = name.replace(" ", "-");
      const [held, waits] = [claim(resource), claim(resource)];
      const first = await other.tryAcquire(held, now());
      assert.ok(first.kind === "granted");
      await ours.queue!.enqueue(waits, now());
      await unwritten(server, () => other.release([{ ...held, tombstoneMs: 0 }], now()));
      const answer = await ask(ours, waits);
      await killed(server);
      assert.match(answer.kind, /^(granted|renewed)$/);
      // The next range of tokens.
      await expectKept(server, waits, first.token + 1024n);
    });
  }

  it("a token that follows one not yet on the disk survives a kill together with it", async (server) => {
    const [ours, other] = [server.engine(), server.engine()];
    await unwritten(server, async () => {
      const first = claim("counted");
      await other.tryAcquire(first, now());
      await other.release([{ ...first, tombstoneMs: 0 }], now());
    });
    const held = claim("counted");
    const answer = await ours.tryAcquire(held, now());
    await killed(server);
    assert.ok(answer.kind === "granted");
    await expectKept(server, held, answer.token);
    const floor = await server.count(
      "resources",
      `name = 'counted' AND last_token >= ${answer.token}`,
    );
    assert.equal(floor, 1, "the token would be given again");
  });
});

/** Others see what `act` does, but its log waits for the next commit. */
async function unwritten(server: MysqlTestServer, act: () => Promise<unknown>): Promise<void> {
  const set = (value: number) =>
    server.admin.query(`SET GLOBAL innodb_flush_log_at_trx_commit = ${value}`);
  await set(0);
  await act();
  await set(1);
}

/**
 * Lets through no more writes than this commit needs: one on MariaDB, a few if a separate thread
 * writes the log.
 */
async function letThrough<T>(commit: Promise<T>): Promise<T> {
  let isDone = false;
  const done = () => {
    isDone = true;
  };
  commit.then(done, done);
  while (!isDone) {
    gate.letOneThrough();
    await sleep(50);
  }
  return commit;
}

async function killed(server: MysqlTestServer): Promise<void> {
  const restarted = server.instance.restart();
  gate.open();
  await restarted;
}

async function expectKept(
  server: MysqlTestServer,
  { resource }: Claim,
  token: bigint,
): Promise<void> {
  const kept = await server.count("grants", `resource = '${resource}' AND token = ${token}`);
  assert.equal(kept, 1, `token ${token} of ${resource} was answered, and the restart has lost it`);
}
