// The error for a misspelt option lists all known options. These tests compare that list with the
// page.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ACQUIRE_DEFAULTS, CONNECT_DEFAULTS, connect, Locks } from "holdfast";
import { memoryEngine } from "holdfast/memory";
import { read } from "../repo-files.js";

const PAGE = "docs/options.md";
const MISSPELT = { "": 1 } as never;
const fn = () => 1;

/** By heading of the page: calls that take these options. */
const CALLS: Readonly<Record<string, readonly ((locks: Locks) => unknown)[]>> = {
  acquire: [(locks) => locks.acquire("a", MISSPELT), (locks) => locks.run("a", MISSPELT, fn)],
  tryAcquire: [(locks) => locks.tryAcquire("a", MISSPELT)],
  once: [(locks) => locks.once("a", MISSPELT, fn)],
  rwLock: [(locks) => locks.rwLock("a", MISSPELT)],
  "read, write": [
    (locks) => locks.rwLock("a").read(MISSPELT),
    (locks) => locks.rwLock("a").write(MISSPELT),
  ],
  semaphore: [(locks) => locks.semaphore("a", { permits: 1, ...(MISSPELT as object) })],
  "acquire and run of a semaphore": [
    (locks) => locks.semaphore("a", { permits: 1 }).acquire(MISSPELT),
    (locks) => locks.semaphore("a", { permits: 1 }).run(MISSPELT, fn),
  ],
  connect: [() => connect("memory:", MISSPELT), () => new Locks(memoryEngine(), MISSPELT)],
  "defaults of connect": [() => connect("memory:", { defaults: MISSPELT })],
  "cohort of connect": [() => connect("memory:", { cohort: MISSPELT })],
};

const sections = new Map(
  read(PAGE)
    .split(/^## /m)
    .slice(1)
    .map((text) => [text.slice(0, text.indexOf("\n")), text] as const),
);

function rowsOf(heading: string): Map<string, string> {
  const text = sections.get(heading) ?? "";
  return new Map(
    [...text.matchAll(/^\| `(\w+)` \| (.*?) \|/gm)].map(([, name, cell]) => [name!, cell!]),
  );
}

function namesOn(heading: string): string[] {
  const own = [...rowsOf(heading).keys()];
  const [, all] = /All of `acquire` but: ([^.]*)\./.exec(sections.get(heading) ?? "") ?? [];
  if (all === undefined) return own;
  const without = [...all.matchAll(/`(\w+)`/g)].map(([, name]) => name!);
  return [...own, ...namesOn("acquire").filter((name) => !without.includes(name))];
}

async function knownTo(call: (locks: Locks) => unknown): Promise<string[]> {
  await using locks = new Locks(memoryEngine());
  try {
    await call(locks);
  } catch (error) {
    const [, names] = /; it knows ([\w, ]+)/.exec((error as Error).message) ?? [];
    assert.ok(names !== undefined, String(error));
    return names.split(", ");
  }
  throw new Error("an option without a name was taken");
}

test(`${PAGE} has a heading for every call in this test, and no other`, () => {
  assert.deepEqual([...sections.keys()].sort(), Object.keys(CALLS).sort());
});

for (const [heading, calls] of Object.entries(CALLS)) {
  test(`${PAGE} lists the options that the code knows: ${heading}`, async () => {
    for (const call of calls) {
      assert.deepEqual(namesOn(heading).sort(), (await knownTo(call)).sort());
    }
  });
}

test(`${PAGE} has the defaults of the code`, () => {
  const { drift, handOvers, handOverMs } = CONNECT_DEFAULTS;
  for (const [heading, defaults] of [
    ["acquire", ACQUIRE_DEFAULTS],
    ["connect", { drift }],
    ["cohort of connect", { handOvers, ms: handOverMs }],
  ] as const) {
    for (const [name, value] of Object.entries(defaults)) {
      const said =
        rowsOf(heading)
          .get(name)
          ?.replace(/(\d) (\d)/g, "$1$2") ?? "";
      assert.match(said, new RegExp(`^[\`"]*${value}\\b`), `${name} of ${heading}`);
    }
  }
});
