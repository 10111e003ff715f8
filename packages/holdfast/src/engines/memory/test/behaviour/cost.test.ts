import {
  checkCostAmongHolders,
  checkCostAmongWaiters,
  checkCostOfListing,
} from "../../../../test-support/cost.fixture.js";
import { memoryEngine } from "../../index.js";

checkCostAmongWaiters(memoryEngine);
checkCostAmongHolders(memoryEngine);
checkCostOfListing(memoryEngine);
