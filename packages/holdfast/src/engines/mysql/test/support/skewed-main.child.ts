// The program of a client with another clock and time zone.
import { Locks } from "../../../../locks.js";
import { obey } from "../../../../test-support/sql/skewed-client.child.js";
import { mysqlEngine } from "../../index.js";
import { localPool } from "./harness.fixture.js";
import { inZone } from "./shedlock.fixture.js";
import { type PrefixedJob, recorder } from "./skew.fixture.js";

const { port, hold, zone, prefix } = JSON.parse(process.argv[2]!) as PrefixedJob;
const pool = inZone(localPool({ port, connectionLimit: 4 }), zone);

async function sessionZone(): Promise<string> {
  const [rows] = await pool.query("SELECT @@SESSION.time_zone AS zone");
  return (rows as { zone: string }[])[0]!.zone;
}

obey(new Locks(mysqlEngine({ client: pool, hold, prefix })), sessionZone, recorder(pool));
