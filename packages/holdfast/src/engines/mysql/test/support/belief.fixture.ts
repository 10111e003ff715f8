import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import type { BeliefServer } from "../../../../test-support/sql/belief.fixture.js";
import type { MysqlTestServer } from "./test-server.fixture.js";

export function believing(server: MysqlTestServer): BeliefServer {
  return {
    locks: () => server.locks(),
    engine: () => server.engine(),
    claim,
    now,
    async leftMs(resource) {
      const text = `SELECT (expires_us - holdfast_now_us(UTC_TIMESTAMP(6))) DIV 1000 AS ms
        FROM holdfast_grants WHERE resource = ?`;
      const [rows] = await server.admin.query(text, [Buffer.from(resource)]);
      return (rows as { ms: number }[])[0]?.ms ?? 0;
    },
  };
}
