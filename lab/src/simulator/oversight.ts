import type { NodeHolder, NodeRequest, Quorum } from "holdfast/quorum/core";
import type { Checker } from "./checker.js";

/** Somebody looks at a lease, as people do, and checks its token or revokes it. */
export function oversee(
  quorum: Quorum,
  checker: Checker,
  resource: string,
  { fence, index, mode }: NodeHolder,
  revokes: boolean,
  now: number,
): void {
  const token = fence + index;
  const request: NodeRequest = revokes
    ? { verb: "revoke", resource, token, force: false }
    : { verb: "check", resource, mode, token };
  const { size, terms } = quorum;
  let yes = 0;
  let no = 0;
  for (let node = 0; node < size; node++) {
    quorum.ask(node, request, (answer) => {
      if (answer.kind === "revoked" && ++yes === terms.writeQuorum)
        checker.revoked(resource, token);
      if (answer.kind !== "checked" || answer.live) return;
      if (++no === size - terms.writeQuorum + 1) checker.checkedDead(resource, token, now);
    });
  }
}
