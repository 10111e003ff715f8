import { EngineError } from "../../errors.js";
import { CODES } from "./wire/operations.js";

const REFUSALS: Readonly<Record<number, readonly [says: string, retryable: boolean]>> = {
  [CODES.noNode]: ["a node of ZooKeeper that should be there is not", true],
  [CODES.noAuth]: [
    "this ZooKeeper user may not do what locks need; docs/engines/zookeeper.md lists it",
    false,
  ],
  [CODES.authFailed]: ["ZooKeeper does not accept these credentials", false],
  [CODES.sessionMoved]: ["the session has moved to another connection", true],
  [CODES.nodeExists]: ["a node of ZooKeeper is there that should not be", true],
  [CODES.badVersion]: ["a node of ZooKeeper was changed meanwhile", true],
  [CODES.notEmpty]: ["a node of ZooKeeper has children that it should not have", false],
  [-8]: ["ZooKeeper refused a request as malformed", false],
  [-108]: ["a parent is an ephemeral node of somebody else", false],
  [-114]: ["ZooKeeper refused the rights of a new node: are there credentials?", false],
  [-119]: ["this ZooKeeper server is cut off and serves readers only", true],
  [-125]: ["a quota of ZooKeeper is used up", true],
  [-127]: ["ZooKeeper has too much to do", true],
};

/** The server refused, so nothing happened. What it did not answer is another matter. */
export function refusal(code: number): EngineError {
  const [says, retryable] = REFUSALS[code] ?? [`ZooKeeper answered with error ${code}`, true];
  return new EngineError(says, { effect: "none", retryable });
}

export function closedEngine(): EngineError {
  return new EngineError("the zookeeper engine was closed", { effect: "none", retryable: false });
}
