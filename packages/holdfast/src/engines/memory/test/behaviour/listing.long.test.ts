import { test } from "node:test";
import { checkLongListing } from "../../../../test-support/cost.fixture.js";
import { memoryEngine } from "../../index.js";

test("listing 100,000 names takes little memory, and no page takes long", () =>
  checkLongListing(memoryEngine()));
