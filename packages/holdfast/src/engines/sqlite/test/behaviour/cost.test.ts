import { after } from "node:test";
import {
  checkCostAmongHolders,
  checkCostAmongWaiters,
  checkCostOfListing,
} from "../../../../test-support/cost.fixture.js";
import { sqliteEngine } from "../../index.js";
import { SqliteTestServer } from "../support/test-server.fixture.js";

const server = new SqliteTestServer();
after(() => server[Symbol.asyncDispose]());

let files = 0;
const open = () => sqliteEngine({ path: `${server.path}-${files++}` });

checkCostAmongWaiters(open);
checkCostAmongHolders(open);
checkCostOfListing(open);
