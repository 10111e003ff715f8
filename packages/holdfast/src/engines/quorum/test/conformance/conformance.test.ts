import { after, before, test } from "node:test";
import { checkLaws } from "../../../../conformance/index.js";
import { harness, SETTINGS } from "../support/harness.fixture.js";
import { Ground } from "../support/test-server.fixture.js";

let ground: Ground | null = null;

before(async () => {
  ground = await Ground.start(5, SETTINGS);
});

after(async () => {
  await ground?.[Symbol.asyncDispose]();
});

checkLaws(
  harness(() => ground),
  test,
);
