// hold: "advisory" while the server accepts no connections: its postmaster is stopped, and sessions
// go on.
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { postgresEngine } from "../../index.js";
import { describeWithPostgres } from "../support/test-server.fixture.js";

const PLAIN = { hold: "advisory", prefix: "", listen: false } as const;
// Longer than a session may take to open.
const STOPPED_MS = 5_600;
const HOLDERS = "SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory'";

describeWithPostgres({}, (it) => {
  it("only one session holds locks after another took too long to open", async (server) => {
    const client = server.pool({ connectionTimeoutMillis: 0, idleTimeoutMillis: 0 });
    const sessions = await Promise.all([1, 2, 3, 4].map(() => client.connect()));
    for (const session of sessions) session.release();
    await server.admin.query("SELECT 1");
    const engine = postgresEngine({ client, ...PLAIN });
    const { pid } = server.instance;
    process.kill(pid, "SIGSTOP");
    const gone = setTimeout(() => process.kill(pid, "SIGCONT"), STOPPED_MS);
    let stopped = true;
    const names: string[] = [];
    const tries: Promise<unknown>[] = [];
    for (let i = 0; stopped; i++) {
      const tried = engine.tryAcquire(claim(`a${i}`, { ttlMs: 60_000 }), now(2_500));
      tries.push(
        tried.then(
          ({ kind }) => kind === "granted" && names.push(`a${i}`),
          () => {},
        ),
      );
      await sleep(100);
      stopped = names.length < 10;
      assert.ok(i < 600, "nothing was granted within a minute");
    }
    clearTimeout(gone);
    await Promise.all(tries);
    // An abandoned session is closed a moment later, when the server notices it.
    await until("one session holds", async () => {
      return (await server.admin.query(HOLDERS)).rows.length === 1;
    });
    await engine.renew([], now());
    const other = server.engine(PLAIN);
    for (const name of names) {
      assert.equal((await other.tryAcquire(claim(name), now())).kind, "busy", name);
    }
    await other.close();
    await engine.close();
    await until("none holds", async () => (await server.admin.query(HOLDERS)).rows.length === 0);
  });
});
