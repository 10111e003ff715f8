import { type PostgresHold, postgresEngine } from "holdfast/postgres";
import pg from "pg";
import type { Contender } from "../../measuring/suite.js";
import { ourSubject } from "../our-subject.js";

export const holdfastRows = holdfast("holdfast", "holdfast", "rows");
export const holdfastAdvisory = holdfast("holdfast-advisory", "holdfast, advisory", "advisory");

function holdfast(id: string, name: string, hold: PostgresHold): Contender {
  return {
    id,
    name,
    ours: true,
    reach: "host",
    ...(hold === "advisory" ? { sitsOut: { rows: "plants are grants of the other kind" } } : {}),
    async open({ url, ttlMs }) {
      const client = new pg.Pool({ connectionString: url });
      return ourSubject(postgresEngine({ client, hold }), { ttlMs });
    },
  };
}
