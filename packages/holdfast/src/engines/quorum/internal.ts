// What decides in a quorum, without servers, time and chance of its own: for the simulator, which runs
// this very code. It may change with any version.
export { adaptClient } from "../redis/clients/connection.js";
export type {
  AcquireRequest,
  Answered,
  NodeAnswer,
  NodeFailure,
  NodeHolder,
  NodeRequest,
  QuorumNode,
  ReleaseRequest,
  RenewRequest,
} from "./nodes/node.js";
export { RedisNode } from "./nodes/redis-node.js";
export { Notices } from "./nodes/release-notifications.js";
export { type ResolvedQuorum, resolveQuorum } from "./options.js";
export type { QuorumClock } from "./voting/broadcast.js";
export { poll } from "./voting/polls.js";
export {
  type AcquireOutcome,
  Quorum,
  type QuorumClaim,
  type QuorumEvent,
  type QuorumTerms,
  type Surroundings,
} from "./voting/quorum.js";
export type { RenewOutcome, RenewWish } from "./voting/renewal.js";
