// Several lists at once while names come and go, and some lists that nobody finishes.
import assert from "node:assert/strict";
import type { Claim, Engine, ListPage } from "../engine.js";
import { now } from "./call.fixture.js";
import { claim } from "./claim.fixture.js";

const PAGE = 32;
const MOST_PAGES = 1_000;
const EACH = 100;
const ABANDONED = 5;

/** Names come and go in the middle of two lists, and `between` may disturb the servers. */
export async function checkListAmongChanges(
  engine: Engine,
  between: () => Promise<void> = async () => {},
): Promise<void> {
  const stays = await held(engine, "stays");
  const goes = await held(engine, "goes");
  const early = await pages(engine, null, 2);
  const late = await pages(engine, null, 1);
  for (let i = 0; i < ABANDONED; i++) await pages(engine, null, 1);
  await engine.release(
    goes.map((one) => ({ ...one, tombstoneMs: 0 })),
    now(),
  );
  await held(engine, "comes");
  await between();
  const rests = await Promise.all([early, late].map(({ cursor }) => pages(engine, cursor)));
  for (const [i, begun] of [early, late].entries()) {
    const rest = rests[i]!.names;
    assert.ok(!rest.some((name) => name.startsWith("goes")), "what is gone is not shown");
    const all = [...begun.names, ...rest];
    assert.equal(new Set(all).size, all.length, "none is shown twice");
    const stayed = all.filter((name) => name.startsWith("stays")).sort();
    assert.deepEqual(stayed, stays.map(({ resource }) => resource).sort(), "who stays is shown");
  }
  const matching = await pages(engine, null, MOST_PAGES, "stays-1?");
  assert.deepEqual(
    matching.names.sort(),
    Array.from({ length: 10 }, (_, i) => `stays-1${i}`),
  );
}

async function held(engine: Engine, kind: string): Promise<Claim[]> {
  const claims = Array.from({ length: EACH }, (_, i) => claim(`${kind}-${i}`, { ttlMs: 60_000 }));
  const answers = await Promise.all(claims.map((one) => engine.tryAcquire(one, now())));
  assert.ok(answers.every(({ kind }) => kind === "granted"));
  return claims;
}

/** The names on the next pages, and the cursor after them. */
async function pages(engine: Engine, from: string | null, most = MOST_PAGES, match = "*") {
  const names: string[] = [];
  let cursor = from;
  for (let i = 0; i < most; i++) {
    const page: ListPage = await engine.list({ match, cursor, max: PAGE }, now());
    names.push(...page.views.map(({ resource }) => resource));
    cursor = page.cursor;
    if (cursor === null) return { names, cursor };
  }
  assert.ok(most < MOST_PAGES, "the list does not end");
  return { names, cursor };
}
