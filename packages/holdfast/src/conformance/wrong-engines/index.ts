import type { WrongEngine } from "./altered.js";
import { beliefDefects } from "./belief.js";
import { delayDefects } from "./closing.js";
import { costDefects } from "./cost.js";
import { countingDefects } from "./counting.js";
import { exactnessDefects } from "./exactness.js";
import { failureDefects } from "./failures.js";
import { lateDefects } from "./late.js";
import { lifeDefects } from "./life.js";
import { nameDefects } from "./naming.js";
import { numberDefects } from "./numbers.js";
import { ownershipDefects } from "./ownership.js";
import { queueDefects } from "./queues.js";
import { survivalDefects } from "./survival.js";
import { variantDefects } from "./variants.js";

/** Engines that are wrong on purpose, each in one way. The laws must see every one of them. */
export const wrongEngines: readonly WrongEngine[] = [
  ...[...countingDefects, ...ownershipDefects, ...lifeDefects, ...numberDefects],
  ...[...nameDefects, ...failureDefects, ...queueDefects, ...delayDefects],
  ...[...beliefDefects, ...exactnessDefects, ...lateDefects, ...variantDefects],
  ...[...survivalDefects, ...costDefects],
];
