// The decisions of a quorum, without servers, clock and randomness: the simulator runs this very code
// with its own. It may change with any version.
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
export { ReleaseNotifications } from "./nodes/release-notifications.js";
export { type ResolvedQuorum, resolveQuorum } from "./options.js";
export type { QuorumClock } from "./voting/broadcast.js";
export { poll } from "./voting/polls.js";
export {
  type AcquireOutcome,
  type Environment,
  Quorum,
  type QuorumClaim,
  type QuorumEvent,
  type QuorumTerms,
} from "./voting/quorum.js";
export type { RenewOutcome, RenewParams } from "./voting/renewal.js";
