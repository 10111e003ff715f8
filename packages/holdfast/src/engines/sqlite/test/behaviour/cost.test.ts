import { after } from "node:test";
import {
  checkCostAmongHolders,
  checkCostAmongWaiters,
  checkCostOfListing,
} from "../../../../test-support/cost.fixture.js";
import { sqliteEngine } from "../../index.js";
import { Ground } from "../support/test-server.fixture.js";

const ground = new Ground();
after(() => ground[Symbol.asyncDispose]());

let files = 0;
const open = () => sqliteEngine({ path: `${ground.path}-${files++}` });

checkCostAmongWaiters(open);
checkCostAmongHolders(open);
checkCostOfListing(open);
