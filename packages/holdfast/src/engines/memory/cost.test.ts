import { costsOf } from "../../cost.fixture.js";
import { memoryEngine } from "./index.js";

costsOf(() => memoryEngine());
