import { fileURLToPath } from "node:url";
import type mysql from "mysql2/promise";
import type { SkewServer } from "../../../../test-support/sql/skew.fixture.js";
import {
  type Recorder,
  SkewedClient,
  type SkewedJob,
  type Step,
} from "../../../../test-support/sql/skewed-client.child.js";
import { MYSQL_DEFAULTS, SHEDLOCK_PREFIX } from "../../options.js";
import { shedLock } from "./shedlock.fixture.js";
import type { MysqlTestServer } from "./test-server.fixture.js";

const MAIN = fileURLToPath(new URL("skewed-main.child.js", import.meta.url));
const STEPS =
  "n BIGINT AUTO_INCREMENT PRIMARY KEY, resource TEXT, who TEXT, what TEXT, token BIGINT";

export function recorder(pool: mysql.Pool): Recorder {
  const text = "INSERT INTO steps (resource, who, what, token) VALUES (?, ?, ?, ?)";
  return (resource, { who, what, token }) => pool.query(text, [resource, who, what, token]);
}

export interface PrefixedJob extends SkewedJob {
  readonly prefix: string;
}

/** Tables with other names than the default ones. */
export interface Tables {
  readonly prefix: string;
  readonly shedlock: string;
}

export async function skewServer(
  server: MysqlTestServer,
  hold: "rows" | "shedlock",
  tables?: Tables,
): Promise<SkewServer> {
  const { admin, instance } = server;
  await admin.query(`DROP TABLE IF EXISTS steps; CREATE TABLE steps (${STEPS})`);
  const usual = hold === "rows" ? MYSQL_DEFAULTS.prefix : SHEDLOCK_PREFIX;
  const { prefix, shedlock } = tables ?? { prefix: usual, shedlock: "shedlock" };
  const job: Omit<PrefixedJob, "zone"> = { port: instance.port, hold, prefix };
  const first = async (text: string, resource: string) =>
    ((await admin.query(text, [resource]))[0] as Record<string, unknown>[])[0]!;
  return {
    zones: ["+12:45", "-11:00"],
    theirs: hold === "rows" ? null : shedLock(server.pool(), shedlock),
    locks: () => server.locks({ hold, prefix }),
    start: (zone, env) => new SkewedClient<PrefixedJob>(MAIN, { ...job, zone }, env),
    async times(resource) {
      const grant = `SELECT (expires_us
          - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))) / 1000 AS left_ms
        FROM ${prefix}grants WHERE resource = ?`;
      const leftMs = Number((await first(grant, resource)).left_ms);
      if (hold === "rows") return { leftMs, shedlock: null };
      const row = `SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lock_until) / 1000 AS left_ms,
          TIMESTAMPDIFF(MICROSECOND, locked_at, UTC_TIMESTAMP(6)) / 1000 AS age_ms
        FROM ${shedlock} WHERE name = ?`;
      const times = await first(row, resource);
      return {
        leftMs,
        shedlock: { leftMs: Number(times.left_ms), ageMs: Number(times.age_ms) },
      };
    },
    record: recorder(server.pool()),
    async history(resource) {
      const text = "SELECT who, what, token FROM steps WHERE resource = ? ORDER BY n";
      const [rows] = await admin.query(text, [resource]);
      return (rows as (Omit<Step, "token"> & { token: number })[]).map(
        ({ who, what, token }): Step => ({ who, what, token: BigInt(token) }),
      );
    },
  };
}
