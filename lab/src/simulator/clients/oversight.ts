import { type NodeAnswer, type NodeHolder, poll, type Quorum } from "holdfast/internal/quorum";
import type { Checker } from "../checker.js";

/** The default time limit of a call. */
const PATIENCE_MS = 5_000;

/** Checks the token of somebody's lease or revokes it, as an operator does. */
export function oversee(
  quorum: Quorum,
  checker: Checker,
  resource: string,
  { fence, index, mode }: NodeHolder,
  revokes: boolean,
  now: number,
): void {
  const token = fence + index;
  if (revokes) {
    const request = { verb: "revoke", resource, token, force: false } as const;
    poll(
      quorum,
      request,
      ({ kind }) => kind === "revoked",
      PATIENCE_MS,
      (outcome) => {
        if (outcome === true) checker.revoked(resource, token);
      },
    );
    return;
  }
  const request = { verb: "check", resource, mode, token } as const;
  const isLive = (answer: NodeAnswer) => answer.kind === "checked" && answer.live;
  poll(quorum, request, isLive, PATIENCE_MS, (outcome) => {
    if (outcome === false) checker.checkedDead(resource, token, now);
  });
}
