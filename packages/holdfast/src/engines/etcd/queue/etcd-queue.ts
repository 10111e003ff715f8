import type {
  Call,
  Claim,
  Failed,
  Gone,
  Granted,
  GrantRef,
  Queued,
  QueueFacet,
  Unknown,
  Withdrawn,
} from "../../../engine.js";
import type { CallTimes } from "../client/deadlines.js";
import { failedRequest } from "../client/failure.js";
import type { ClaimStates } from "../holding/claim-states.js";
import type { PushedGrants } from "../holding/pushed-grants.js";
import type { TrackedClaims } from "../holding/tracked-claims.js";
import type { CancelledClaims } from "./cancelled-claims.js";
import type { Claims } from "./claims.js";
import type { Heartbeats } from "./heartbeats.js";
import type { QueueAnswer } from "./queue-answer.js";
import type { WaiterKeys } from "./waiter-keys.js";

interface Tools {
  readonly claims: Claims;
  readonly cancelledClaims: CancelledClaims;
  readonly heartbeats: Heartbeats;
  readonly waiterKeys: WaiterKeys;
  readonly trackedClaims: TrackedClaims;
  readonly claimStates: ClaimStates;
  readonly pushedGrants: PushedGrants;
}

/** Our waiters in the queues of resources. */
export class EtcdQueue implements QueueFacet {
  readonly #tools: Tools;
  readonly #enter: (call: Call) => CallTimes;

  constructor(tools: Tools, enter: (call: Call) => CallTimes) {
    this.#tools = tools;
    this.#enter = enter;
  }

  readonly enqueue = async (claim: Claim, call: Call): Promise<Granted | Queued | Gone> => {
    const { claims, cancelledClaims } = this.#tools;
    const times = this.#enter(call);
    const answer = await cancelledClaims.claim(claim.grantId, (isOver) =>
      claims.enqueue(claim, times.deadline, isOver),
    );
    return this.#record(claim, answer, times);
  };

  readonly heartbeat = async (
    waiters: readonly GrantRef[],
    call: Call,
  ): Promise<readonly (Queued | Granted | Unknown | Failed)[]> => {
    const { heartbeats, trackedClaims, claimStates } = this.#tools;
    const times = this.#enter(call);
    const known = new Set(waiters.filter((ref) => this.#extend(ref, times.at)));
    return heartbeats.beat(waiters, times.deadline, async (ref, queueAnswer) => {
      if (queueAnswer.kind === "failed") return queueAnswer;
      // The claim was released during the read, so the reading is out of date.
      if (known.has(ref) && trackedClaims.isOver(ref)) return { kind: "unknown" };
      const answer = await this.#record(ref, queueAnswer, times).catch(failedRequest);
      if (answer.kind !== "gone") return answer;
      claimStates.forget(ref);
      return { kind: "unknown" };
    });
  };

  readonly withdraw = async (ref: GrantRef, call: Call): Promise<Withdrawn | Granted> => {
    const { heartbeats, waiterKeys, trackedClaims, claimStates } = this.#tools;
    const times = this.#enter(call);
    const asIs = async (_: GrantRef, answer: QueueAnswer | Failed) => answer;
    const [answer] = await heartbeats.beat([ref], times.deadline, asIs);
    if (answer?.kind === "failed") throw answer.error;
    // A push may have granted the claim after it was read as waiting. This answer also tells core.
    const isPushed = answer?.kind === "waits" && trackedClaims.grant(ref) !== null;
    if (answer?.kind === "holds" || isPushed) {
      const granted = await this.#record(ref, answer, times);
      if (granted.kind === "granted") return granted;
    }
    claimStates.forget(ref);
    // If its turn comes at this moment, nobody has been told of the grant yet.
    if (answer?.kind === "waits") await waiterKeys.remove(answer.self, times.deadline);
    return { kind: "withdrawn" };
  };

  readonly onGrant: QueueFacet["onGrant"] = (listener) =>
    this.#tools.pushedGrants.onGrant(listener);

  /** Whether it waits here. A heartbeat of core keeps its place, whether etcd answers or not. */
  #extend(ref: GrantRef, at: number): boolean {
    const { trackedClaims } = this.#tools;
    const waiting = trackedClaims.waiter(ref);
    if (waiting !== null) trackedClaims.extend(waiting, at);
    return waiting !== null;
  }

  async #record(
    ref: GrantRef,
    answer: QueueAnswer,
    times: CallTimes,
  ): Promise<Granted | Queued | Gone> {
    const { claimStates } = this.#tools;
    if (answer.kind === "waits") return claimStates.queue(ref, answer, times);
    if (answer.kind === "holds") return claimStates.grant(ref, answer, times);
    return answer.kind === "gone" ? answer : { kind: "gone", why: "unknown" };
  }
}
