import type { QuorumNode } from "holdfast/internal/quorum";

/** A client that releases only where it knows that it was accepted. Wrong on purpose. */
export function withheld(node: QuorumNode): QuorumNode {
  const accepted = new Set<string>();
  let lastUs = Number.NaN;
  return {
    name: node.name,
    ask: (request, answered) => {
      if (request.verb === "release" && !accepted.has(request.id)) {
        if (!Number.isNaN(lastUs)) answered({ kind: "gone", why: "unknown" }, lastUs);
        return;
      }
      node.ask(request, (answer, us) => {
        lastUs = us;
        if (request.verb === "acquire" && answer.kind === "accepted") accepted.add(request.id);
        answered(answer, us);
      });
    },
  };
}
