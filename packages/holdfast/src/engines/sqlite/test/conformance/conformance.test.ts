import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkLaws } from "../../../../conformance/index.js";
import { harness } from "../support/harness.fixture.js";

const folder = mkdtempSync(join(tmpdir(), "holdfast-laws-"));
after(() => rmSync(folder, { recursive: true, force: true }));

checkLaws(harness(folder), test);
