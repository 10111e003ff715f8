import type { ListServer } from "../../../../test-support/sql/list.fixture.js";
import type { PostgresTestServer } from "./test-server.fixture.js";

export function listServer(server: PostgresTestServer): ListServer {
  return {
    locks: server.locks(),
    engine: server.engine(),
    async plant(prefix, count) {
      const names = `SELECT $1 || i AS name FROM generate_series(1000000, 999999 + ${count}) i`;
      await server.admin.query(`INSERT INTO holdfast.resources (name) ${names}`, [prefix]);
      await server.admin.query(
        `INSERT INTO holdfast.grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms,
            delay_ms, expires_at, label)
          SELECT gen_random_uuid(), n.name, false, 0, nextval('holdfast.tokens'), 1, 1000, 0,
            now() + interval '1 day', 'planted' FROM (${names}) n`,
        [prefix],
      );
      await server.admin.query("VACUUM ANALYZE holdfast.resources, holdfast.grants");
    },
    async rowsRead() {
      // Sessions report their reads with a delay; this waits until earlier reads are reported.
      await server.admin.query("SELECT pg_sleep(1.2)");
      const { rows } = await server.admin.query(
        `SELECT coalesce(sum(idx_tup_fetch + seq_tup_read), 0)::int AS n FROM pg_stat_user_tables
          WHERE schemaname = 'holdfast'`,
      );
      return rows[0].n;
    },
    async locked() {
      const { rows } = await server.admin.query(
        `SELECT count(*)::int AS n FROM pg_locks WHERE granted AND pid <> pg_backend_pid()
          AND (locktype IN ('tuple', 'transactionid')
            OR locktype = 'relation' AND mode NOT IN ('AccessShareLock'))`,
      );
      return rows[0].n;
    },
  };
}
