// What decides in a quorum, without servers, time and chance of its own: for the simulator, which runs
// this very code. It may change with any version.
export { seamOf } from "../redis/client.js";
export type { QuorumClock } from "./canvass.js";
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
} from "./node.js";
export { Notices } from "./notices.js";
export { type ResolvedQuorum, resolveQuorum } from "./options.js";
export { poll } from "./polls.js";
export {
  type AcquireOutcome,
  Quorum,
  type QuorumClaim,
  type QuorumEvent,
  type QuorumTerms,
  type Surroundings,
} from "./quorum.js";
export { RedisNode } from "./redis-node.js";
export type { RenewOutcome, RenewWish } from "./renewal.js";
