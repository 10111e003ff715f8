import type { ListServer } from "../../../../test-support/sql/list.fixture.js";
import { type MysqlTestServer, numbers } from "./test-server.fixture.js";

export function listServer(server: MysqlTestServer): ListServer {
  const now = "holdfast_now_us(UTC_TIMESTAMP(6))";
  return {
    locks: server.locks(),
    engine: server.engine(),
    async plant(prefix, count) {
      const names = `CONCAT('${prefix}', 999999 + seq)`;
      await server.admin.query(`
        INSERT INTO holdfast_resources (name, last_token, used_us)
          SELECT ${names}, seq, ${now} FROM ${numbers(count)};
        INSERT INTO holdfast_grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms,
            delay_ms, expires_us, label)
          SELECT UNHEX(LEFT(SHA2(${names}, 256), 32)), ${names}, 0, 0, seq, 1, 1000, 0, ${now} + 86400000000, 'planted'
            FROM ${numbers(count)};
        INSERT IGNORE INTO holdfast_fences (resource, token, tokens, shared)
          SELECT resource, token, tokens, shared FROM holdfast_grants`);
    },
    async rowsRead() {
      const [rows] = await server.admin.query("SHOW GLOBAL STATUS LIKE 'Handler_read%'");
      return (rows as { Value: string }[]).reduce((sum, { Value }) => sum + Number(Value), 0);
    },
    async locked() {
      const [rows] = await server.admin.query(
        "SELECT COALESCE(SUM(trx_rows_locked), 0) AS n FROM information_schema.innodb_trx",
      );
      return Number((rows as { n: number }[])[0]!.n);
    },
  };
}
