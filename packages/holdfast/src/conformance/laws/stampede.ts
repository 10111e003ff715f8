import assert from "node:assert";
import type { Lease } from "../../core/holding/lease.js";
import type { AcquireOptions } from "../../options.js";
import { ascending, assertRising } from "../client.js";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import type { LawContext } from "../law-context.js";
import { within } from "../timing.js";

const CLIENTS = 4;
/** The limit for a law that hangs: a busy machine may take many times as long as an idle one. */
const ALL_MS = 60_000;
const LAW_MS = 2 * ALL_MS;

/** Counts the current holders. Fails when two holders overlap that must not. */
class CriticalSection {
  readonly tokens: bigint[] = [];
  most = 0;
  #inside = 0;
  #writers = 0;

  async visit(lease: Lease): Promise<void> {
    this.#inside++;
    if (lease.mode === "exclusive") this.#writers++;
    this.tokens.push(lease.token);
    this.most = Math.max(this.most, this.#inside);
    const check = () => {
      assert(this.#writers === 0 || this.#inside === 1, "another holder overlaps with a writer");
      assert(lease.held, "the lease of a holder is not held");
    };
    check();
    await new Promise<void>((go) => setImmediate(go));
    check();
    this.#inside--;
    if (lease.mode === "exclusive") this.#writers--;
  }
}

/** Several clients with several contenders each, which acquire several times. */
async function stampede(
  s: LawContext,
  optionsOf: (contender: number) => AcquireOptions,
): Promise<CriticalSection> {
  const polled = s.harness.queue === false;
  const contenders = polled ? 2 : 6;
  const rounds = polled ? 2 : 4;
  const resource = s.resource();
  const section = new CriticalSection();
  const works: Promise<void>[] = [];
  for (let i = 0; i < CLIENTS; i++) {
    const locks = await s.locks();
    for (let j = 0; j < contenders; j++) {
      const again = async () => {
        const options: AcquireOptions = { waitMs: ALL_MS, ...optionsOf(i * contenders + j) };
        for (let k = 0; k < rounds; k++)
          await locks.run(resource, options, (l) => section.visit(l));
      };
      works.push(again());
    }
  }
  await within(ALL_MS, Promise.all(works), "a stampede");
  assert.equal(
    section.tokens.length,
    CLIENTS * contenders * rounds,
    "every contender has held each time",
  );
  await s.untilEmpty(await s.client(), resource);
  return section;
}

export const stampedes: LawGroup = {
  id: "L15",
  name: "stampede",
  text: "No matter how many contend at once, no two overlap that must not, and all get their turn.",
  laws: [
    law(
      "L15.1",
      "contenders of several clients never overlap, and all finish",
      [],
      async (s) => {
        const section = await stampede(s, () => ({ fair: "strict" }));
        assert.equal(section.most, 1);
        assertRising(section.tokens);
      },
      LAW_MS,
    ),

    law(
      "L15.2",
      "contenders never overlap with hand-over inside each process",
      [],
      async (s) => {
        const section = await stampede(s, () => ({ fair: "cohort" }));
        assert.equal(section.most, 1);
        assertRising(section.tokens);
      },
      LAW_MS,
    ),

    law(
      "L15.3",
      "contenders with and without hand-over never overlap on one resource",
      [],
      async (s) => {
        const section = await stampede(s, (i) => ({ fair: i % 2 ? "cohort" : "strict" }));
        assert.equal(section.most, 1);
        assertRising(section.tokens);
      },
      LAW_MS,
    ),

    law(
      "L15.4",
      "permits are never exceeded, and are used",
      ["limits"],
      async (s) => {
        const section = await stampede(s, () => ({ mode: "shared", limit: 3 }));
        assert(section.most <= 3, `${section.most} were inside with 3 permits`);
        assertRising([...section.tokens].sort(ascending));
      },
      LAW_MS,
    ),

    law(
      "L15.5",
      "readers and writers never overlap, and all finish",
      ["shared"],
      async (s) => {
        const section = await stampede(s, (i) => ({ mode: i % 3 === 0 ? "exclusive" : "shared" }));
        assertRising([...section.tokens].sort(ascending));
      },
      LAW_MS,
    ),
  ],
};
