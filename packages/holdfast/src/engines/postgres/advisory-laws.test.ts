// The laws with hold: "advisory", and what session locks cannot keep of them.
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "@holdfast/servers";
import { checkLaws, type Excuse, findLaw } from "../../conformance/index.js";
import { ADVISORY_TRAITS, AdvisoryEngine } from "./advisory-engine.js";
import { PostgresHarness } from "./harness.fixture.js";
import { POSTGRES_DEFAULTS } from "./options.js";

const EXCUSES: readonly (readonly [law: string, why: string])[] = [];

let server: PostgresServer | undefined;
const harness = new PostgresHarness(
  "postgres with advisory locks",
  () => server && { server },
  true,
  {
    traits: ADVISORY_TRAITS,
    query: "hold=advisory",
    make: (pool, end) => new AdvisoryEngine(pool, { ...POSTGRES_DEFAULTS, hold: "advisory" }, end),
    excuses: EXCUSES.map(([law, why]): Excuse => {
      return { law, why, witness: (harness) => findLaw(law).run(harness) };
    }),
  },
);

before(async () => {
  server = await startPostgres();
});

after(async () => {
  await harness.end();
  await server?.stop();
});

checkLaws(harness, test);
