import { AssertionError } from "node:assert";
import { type Excuse, type Harness, inapplicable, type Law } from "./harness.js";
import { laws } from "./laws.js";

/** `test` of node:test, `it` of vitest, or anything of the same shape. */
export type TestFunction = (title: string, run: () => Promise<void>) => unknown;

/** Registers one test per law. The titles of laws that do not apply give the reason. */
export function checkLaws(harness: Harness, test: TestFunction): void {
  for (const excuse of harness.excuses ?? []) {
    if (laws.some((law) => covers(excuse, law))) continue;
    throw new Error(`an excuse of ${harness.name} names ${excuse.law}, and there is no such law`);
  }
  for (const law of laws) {
    const title = `${law.id} ${law.title}`;
    const reason = inapplicable(law, harness);
    const excuse = harness.excuses?.find((entry) => covers(entry, law));
    if (reason !== null) {
      test(`${title} (not applicable: ${reason})`, async () => {});
    } else if (excuse !== undefined) {
      test(`${title} (excused: ${excuse.why})`, () => mustFail(excuse, harness));
    } else {
      test(title, () => law.run(harness));
    }
  }
}

/** The laws that do not apply to this harness, with the reasons. */
export function notApplicable(harness: Harness): { readonly law: Law; readonly why: string }[] {
  return laws.flatMap((law) => {
    const why = inapplicable(law, harness);
    return why === null ? [] : [{ law, why }];
  });
}

/** Finds one law, to run it alone or as the witness of an excuse. */
export function findLaw(id: string): Law {
  const law = laws.find((entry) => entry.id === id);
  if (law === undefined) throw new Error(`there is no law ${id}`);
  return law;
}

async function mustFail(excuse: Excuse, harness: Harness): Promise<void> {
  await harness.reset();
  try {
    await excuse.witness(harness);
  } catch (error) {
    // Only a failed assertion is a proof. A witness that fails for another reason proves nothing.
    if (error instanceof AssertionError) return;
    throw error;
  }
  throw new Error(
    `the witness for ${excuse.law} passed: ${harness.name} can keep this law after all, ` +
      "and the excuse must go",
  );
}

function covers(excuse: Excuse, law: Law): boolean {
  return law.id === excuse.law || law.id.startsWith(`${excuse.law}.`);
}
