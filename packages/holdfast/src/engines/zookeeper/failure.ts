import type { Call } from "../../engine.js";
import { EngineError, type FailureReason } from "../../errors.js";
import { CODES } from "./wire/codes.js";

type Refusal = readonly [says: string, retryable: boolean, effect?: "unknown"];

// A refusal means that the server did nothing, except where the effect is "unknown" here.
const REFUSALS: Readonly<Record<number, Refusal>> = {
  [CODES.systemError]: ["ZooKeeper met an error of its own", true, "unknown"],
  [CODES.inconsistent]: ["ZooKeeper met an inconsistency of its own", true, "unknown"],
  [CODES.dataInconsistent]: ["ZooKeeper met an inconsistency in its data", true, "unknown"],
  [CODES.connectionLoss]: ["ZooKeeper lost a connection of its own", true, "unknown"],
  [CODES.marshalling]: ["ZooKeeper could not read or write a message", true, "unknown"],
  [CODES.unimplemented]: ["this ZooKeeper does not know a request that locks need", false],
  [CODES.timeout]: ["ZooKeeper ran out of time", true, "unknown"],
  [CODES.badArguments]: ["ZooKeeper refused a request as malformed", false],
  [CODES.unknownSession]: ["ZooKeeper does not know the session", true],
  [CODES.noNode]: ["a node of ZooKeeper that should be there is not", true],
  [CODES.noAuth]: [
    "this ZooKeeper user may not do what locks need; docs/engines/zookeeper.md of the package holdfast lists it",
    false,
  ],
  [CODES.badVersion]: ["a node of ZooKeeper was changed by somebody else", true],
  [CODES.noChildren]: ["a parent is an ephemeral node of somebody else", false],
  [CODES.nodeExists]: ["a node of ZooKeeper is there that should not be", true],
  [CODES.notEmpty]: ["a node of ZooKeeper has children that it should not have", false],
  [CODES.sessionExpired]: ["the ZooKeeper session has expired", true],
  [CODES.invalidAcl]: ["ZooKeeper refused the rights of a new node: are there credentials?", false],
  [CODES.authFailed]: ["ZooKeeper does not accept these credentials", false],
  [CODES.sessionMoved]: ["the session has moved to another connection", true],
  [CODES.readOnly]: ["this ZooKeeper server is cut off and serves readers only", true],
  [CODES.localSession]: ["this ZooKeeper server has no sessions that may hold nodes", false],
  [CODES.requestTimeout]: ["ZooKeeper ran out of time", true, "unknown"],
  [CODES.saslRequired]: ["ZooKeeper wants its clients to log in by SASL: not offered here", false],
  [CODES.quotaExceeded]: ["a quota of ZooKeeper is used up", true],
  [CODES.throttled]: ["ZooKeeper has too much to do", true],
};

const REASONS: Readonly<Record<number, FailureReason>> = {
  [CODES.connectionLoss]: "unreachable",
  [CODES.noAuth]: "rights",
  [CODES.authFailed]: "credentials",
  [CODES.saslRequired]: "credentials",
};

/**
 * The error for an answer with a failure code. A request without an answer is handled elsewhere.
 */
export function refusal(code: number): EngineError {
  const unheardOf: Refusal = [`ZooKeeper answered with code ${code}`, true, "unknown"];
  const [says, retryable, effect = "none"] = REFUSALS[code] ?? unheardOf;
  const reason = REASONS[code] ?? "other";
  return new EngineError(says, { effect, retryable, reason });
}

/** A request failed without an effect, after an earlier one whose effect is unknown. */
export function inDoubt(error: EngineError): EngineError {
  const { message, retryable, reason } = error;
  return new EngineError(message, { effect: "unknown", retryable, reason, cause: error });
}

/** The session is over, and every node that the request made ended with it. */
export function withoutEffect(error: EngineError): EngineError {
  const { message, retryable, reason } = error;
  return new EngineError(message, { effect: "none", retryable, reason, cause: error });
}

/** A little less than core's own limit, so that core gets our error instead of its own timeout. */
const OF_THE_TIME = 0.9;

/** Until when the servers may answer a call that starts now; on systemClock. */
export function deadlineOf(now: number, { timeoutMs }: Pick<Call, "timeoutMs">): number {
  return now + timeoutMs * OF_THE_TIME;
}

export function closedEngine(): EngineError {
  return new EngineError("the zookeeper engine was closed", { effect: "none", retryable: false });
}
