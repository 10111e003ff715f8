export type {
  Excuse,
  Harness,
  Law,
  LawGroup,
  Member,
  Misanswered,
  Need,
  Relayed,
  Survival,
  TrueGrant,
} from "./harness.js";
export { costBeside } from "./laws/cost.js";
export { groups, laws } from "./laws.js";
export { checkLaws, findLaw, notApplicable, type TestFunction } from "./suite.js";
export { type OrderLaw, withoutQueue } from "./without-queue.js";
