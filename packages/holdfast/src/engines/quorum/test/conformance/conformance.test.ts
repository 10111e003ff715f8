import { after, before, test } from "node:test";
import { checkLaws } from "../../../../conformance/index.js";
import { harness, SETTINGS } from "../support/harness.fixture.js";
import { TestQuorum } from "../support/test-quorum.fixture.js";

let quorum: TestQuorum | null = null;

before(async () => {
  quorum = await TestQuorum.start(5, SETTINGS);
});

after(async () => {
  await quorum?.[Symbol.asyncDispose]();
});

checkLaws(
  harness(() => quorum),
  test,
);
