import { test } from "node:test";
import { holdMany } from "../support/load.fixture.js";

test("500 leases of one process cost as many keepalives as one", () => holdMany(500));
