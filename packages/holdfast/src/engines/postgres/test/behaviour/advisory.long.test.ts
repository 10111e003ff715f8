// The laws with hold: "advisory", and the excuses for those that session locks cannot keep.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type PostgresServer, startPostgres } from "@holdfast/servers";
import {
  checkLaws,
  type Excuse,
  findLaw,
  type Harness,
  withoutQueue,
} from "../../../../conformance/index.js";
import type { Engine } from "../../../../engine.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { ADVISORY_TRAITS, AdvisoryEngine } from "../../advisory/advisory-engine.js";
import { POSTGRES_DEFAULTS } from "../../options.js";
import { PostgresHarness } from "../support/harness.fixture.js";

const ENDS_WITH_CONNECTION =
  "a session lock ends with its connection, whatever its holder was promised";

/** Laws that fail themselves, and so are their own witnesses. */
const ITSELF: readonly (readonly [law: string, why: string])[] = [
  ["L4.1", ENDS_WITH_CONNECTION],
  ["L5.11", ENDS_WITH_CONNECTION],
  ["L6.4", "no session can release what another one holds"],
];

const EXCUSES: readonly Excuse[] = [
  ...ITSELF.map(([law, why]): Excuse => {
    return { law, why, witness: (harness) => findLaw(law).run(harness) };
  }),
  {
    // With a ttl longer than any pause of a busy machine.
    law: "L14.3",
    why: ENDS_WITH_CONNECTION,
    witness: async (harness) => {
      const [holder, other] = [await open(harness), await open(harness)];
      const taken = now();
      await holder.tryAcquire(claim("c", { ttlMs: 60_000 }), taken);
      await harness.sever?.(holder);
      const isFree = async () => (await other.tryAcquire(claim("c"), now())).kind === "granted";
      await until("the next one is served", isFree, 20_000).catch((cause: unknown) => {
        throw new Error("this proves nothing", { cause });
      });
      assert.ok(now().startedAt >= taken.startedAt + 60_000, "not before its end");
    },
  },
  ...withoutQueue(
    "there is no queue: the client that tries first after the release is served first",
    "L13.10",
  ),
  ...withoutQueue(
    "there is no queue: PostgreSQL does not know of a writer that keeps trying",
    "L2.13",
  ),
];

const opened: Engine[] = [];

async function open(harness: Harness): Promise<Engine> {
  const engine = await harness.open();
  opened.push(engine);
  return engine;
}

let server: PostgresServer | undefined;
const harness = new PostgresHarness(
  "postgres with advisory locks",
  () => server && { server },
  true,
  {
    traits: ADVISORY_TRAITS,
    query: "hold=advisory",
    make: (pool, end) => new AdvisoryEngine(pool, { ...POSTGRES_DEFAULTS, hold: "advisory" }, end),
    excuses: EXCUSES,
  },
);

before(async () => {
  server = await startPostgres();
});

after(async () => {
  for (const engine of opened) await engine.close();
  await harness.end();
  await server?.stop();
});

checkLaws(harness, test);
