export type {
  Excuse,
  Harness,
  Law,
  LawGroup,
  Misanswered,
  Need,
  Relayed,
  TrueGrant,
} from "./harness.js";
export { groups, laws } from "./laws.js";
export { checkLaws, findLaw, notApplicable, type TestFunction } from "./suite.js";
