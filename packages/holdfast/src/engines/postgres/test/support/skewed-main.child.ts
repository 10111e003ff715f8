// The program of a client with another clock and time zone.
import { Locks } from "../../../../locks.js";
import { obey, type SkewedJob } from "../../../../test-support/sql/skewed-client.child.js";
import { postgresEngine } from "../../index.js";
import { quietPool } from "./harness.fixture.js";
import { recorder } from "./skew.fixture.js";

const { port, hold, zone } = JSON.parse(process.argv[2]!) as SkewedJob;
const pool = quietPool({ port, max: 4, options: `-c timezone=${zone}` });
const sessionZone = async () => (await pool.query("SHOW timezone")).rows[0].TimeZone as string;

obey(new Locks(postgresEngine({ client: pool, hold })), sessionZone, recorder(pool));
