import { test } from "node:test";
import { holdMany } from "./load.fixture.js";

test("500 leases of one process cost as many keepalives as one", () => holdMany(500));
