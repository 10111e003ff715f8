// The database is killed under load and restarted: what it acknowledged still holds.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { FencedOutError } from "../../errors.js";
import type { Locks } from "../../locks.js";
import type { UserSession } from "./transactions.fixture.js";

export interface KillServer {
  locks(): Locks;
  /** Rejects while the server is down. */
  session(): Promise<UserSession & { end(): void }>;
  /** Kills the server and starts it again. */
  restart(): Promise<void>;
}

const WORKERS = 3;
const KILLS = 2;
const WRITES_BEFORE_A_KILL = 2;
// A client recovers with its next call; a grant whose release was lost ends with its ttl.
const TTL_MS = 5_000;
const BACK_WITHIN_MS = 60_000;

/** A register that accepts a write only from the holder, checked in the same transaction. */
export async function surviveKills(server: KillServer): Promise<void> {
  const load = new Load(server);
  const first = await server.session();
  await first.query("CREATE TABLE register (n int, token bigint)");
  await first.query("INSERT INTO register VALUES (0, 0)");
  first.end();
  const old = await server.locks().acquire("a", { ttlMs: 1_000, renew: false });
  const work = Promise.all(Array.from({ length: WORKERS }, (_, i) => load.work(i)));
  work.catch(() => {});
  for (let kill = 0; kill < KILLS; kill++) {
    await load.untilEveryoneWrote(WRITES_BEFORE_A_KILL, work);
    await server.restart();
  }
  await load.untilEveryoneWrote(WRITES_BEFORE_A_KILL, work);
  load.over = true;
  await work;
  const last = await server.session();
  await last.query("BEGIN");
  await assert.rejects(last.fence(old.sequencer), FencedOutError, "a stale write was accepted");
  await last.query("ROLLBACK");
  const [n, token] = await readRegister(last);
  last.end();
  // A commit whose answer was lost may have been carried out.
  const { sure, doubtful } = load;
  assert.ok(n >= sure && n <= sure + doubtful, `${n} of ${sure} and perhaps ${doubtful} writes`);
  assert.ok(token <= load.highest);
}

class Load {
  over = false;
  sure = 0;
  doubtful = 0;
  highest = 0n;
  readonly #server: KillServer;
  #writesOf: number[] = [];
  #leases = 0;
  #lastError: unknown = null;

  constructor(server: KillServer) {
    this.#server = server;
  }

  async untilEveryoneWrote(times: number, work: Promise<unknown>): Promise<void> {
    this.#writesOf = Array<number>(WORKERS).fill(0);
    const deadline = performance.now() + BACK_WITHIN_MS;
    while (this.#writesOf.some((count) => count < times)) {
      if (performance.now() >= deadline) assert.fail(this.#standstill());
      await Promise.race([sleep(20), work.then(() => assert.fail("the work ended"))]);
    }
  }

  async work(worker: number): Promise<void> {
    const locks = this.#server.locks();
    const retry = { [Symbol.iterator]: forever };
    const options = { retry, waitMs: 120_000, ttlMs: TTL_MS, callTimeoutMs: 3_000 } as const;
    while (!this.over) {
      const lease = await locks.acquire("a", { ...options, fair: "strict" });
      assert.ok(lease.token > this.highest, `token ${lease.token} came after ${this.highest}`);
      this.highest = lease.token;
      this.#leases++;
      const session = await this.#server.session().catch((error: unknown) => {
        this.#lastError = error;
        return null;
      });
      try {
        if (session !== null) await this.#write(session, lease.sequencer, lease.token, worker);
      } finally {
        session?.end();
        await lease.release().catch(() => {});
      }
    }
  }

  #standstill(): string {
    const done = `writes since the server is back: ${this.#writesOf}; ${this.#leases} leases in all`;
    return `${done}, last error: ${this.#lastError}`;
  }

  async #write(session: UserSession, sequencer: string, token: bigint, worker: number) {
    let committing = false;
    try {
      await session.query("BEGIN");
      await session.fence(sequencer);
      const [n, last] = await readRegister(session);
      assert.ok(last < token, `a write under ${last} came before one under ${token}`);
      await session.query(`UPDATE register SET n = ${n + 1}, token = ${token}`);
      committing = true;
      await session.query("COMMIT");
      this.sure++;
      this.#writesOf[worker]!++;
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      this.#lastError = error;
      // Killed with the server, or fenced out. Before the commit nothing was kept.
      if (committing) this.doubtful++;
    }
  }
}

async function readRegister(session: UserSession): Promise<[n: number, token: bigint]> {
  const answer = (await session.query("SELECT n, token FROM register")) as
    | { rows: { n: number; token: string }[] }
    | [{ n: number; token: number }[]];
  const row = ("rows" in answer ? answer.rows : answer[0])[0]!;
  return [Number(row.n), BigInt(row.token)];
}

function* forever(): Generator<number> {
  for (;;) yield 50;
}
