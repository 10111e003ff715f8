import assert from "node:assert";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { withLaws } from "./contract-page.js";
import { groups } from "./index.js";

const PAGE = new URL("../../../../docs/contract.md", import.meta.url);

// HOLDFAST_WRITE_DOCS=1 updates the page instead of failing.
test("docs/contract.md lists the current laws", () => {
  const page = readFileSync(PAGE, "utf8");
  const fresh = withLaws(page, groups);
  if (process.env.HOLDFAST_WRITE_DOCS === "1") writeFileSync(PAGE, fresh);
  else assert.equal(page, fresh, "run this test once with HOLDFAST_WRITE_DOCS=1");
});
