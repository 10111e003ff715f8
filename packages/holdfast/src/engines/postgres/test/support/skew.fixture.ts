import { fileURLToPath } from "node:url";
import type pg from "pg";
import type { SkewServer } from "../../../../test-support/sql/skew.fixture.js";
import {
  type Recorder,
  SkewedClient,
  type Step,
} from "../../../../test-support/sql/skewed-client.child.js";
import { SHEDLOCK_SCHEMA } from "../../options.js";
import { shedLockServer } from "./shedlock.fixture.js";
import type { PostgresTestServer } from "./test-server.fixture.js";

const MAIN = fileURLToPath(new URL("skewed-main.child.js", import.meta.url));
const STEPS = "n bigserial PRIMARY KEY, resource text, who text, what text, token bigint";

export function recorder(pool: pg.Pool): Recorder {
  const text = "INSERT INTO public.steps (resource, who, what, token) VALUES ($1, $2, $3, $4)";
  return (resource, { who, what, token }) => pool.query(text, [resource, who, what, token]);
}

export async function skewServer(
  server: PostgresTestServer,
  hold: "rows" | "shedlock",
): Promise<SkewServer> {
  const { admin, instance } = server;
  await admin.query(`DROP TABLE IF EXISTS steps; CREATE TABLE steps (${STEPS})`);
  const schema = hold === "rows" ? "holdfast" : SHEDLOCK_SCHEMA;
  return {
    zones: ["Pacific/Kiritimati", "America/St_Johns"],
    theirs: hold === "rows" ? null : shedLockServer(server).theirs,
    locks: () => server.locks({ hold }),
    start: (zone, env) => new SkewedClient(MAIN, { port: instance.port, hold, zone }, env),
    async times(resource) {
      const grant = `SELECT extract(epoch FROM expires_at - clock_timestamp()) * 1000 AS left_ms
        FROM ${schema}.grants WHERE resource = $1`;
      const leftMs = Number((await admin.query(grant, [resource])).rows[0].left_ms);
      if (hold === "rows") return { leftMs, shedlock: null };
      const row = `SELECT extract(epoch FROM lock_until - utc) * 1000 AS left_ms,
          extract(epoch FROM utc - locked_at) * 1000 AS age_ms
        FROM shedlock, timezone('utc', clock_timestamp()) AS utc WHERE name = $1`;
      const [times] = (await admin.query(row, [resource])).rows;
      return {
        leftMs,
        shedlock: { leftMs: Number(times.left_ms), ageMs: Number(times.age_ms) },
      };
    },
    record: recorder(server.pool()),
    async history(resource) {
      const text = "SELECT who, what, token FROM steps WHERE resource = $1 ORDER BY n";
      const { rows } = await admin.query(text, [resource]);
      return rows.map(({ who, what, token }): Step => ({ who, what, token: BigInt(token) }));
    },
  };
}
