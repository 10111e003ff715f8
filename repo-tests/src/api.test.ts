import assert from "node:assert/strict";
import { test } from "node:test";
import { API_RECORD, publicApi } from "./api.js";
import { read } from "./repo-files.js";

test(`${API_RECORD} lists the public names of the library`, async () => {
  const hint = "if the change is wanted, run node repo-tests/dist/api.js --write";
  assert.equal(await publicApi(), read(API_RECORD), hint);
});
