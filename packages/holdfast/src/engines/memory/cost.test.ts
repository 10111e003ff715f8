import {
  checkCostAmongHolders,
  checkCostAmongWaiters,
  checkCostOfListing,
} from "../../cost.fixture.js";
import { memoryEngine } from "./index.js";

checkCostAmongWaiters(memoryEngine);
checkCostAmongHolders(memoryEngine);
checkCostOfListing(memoryEngine);
