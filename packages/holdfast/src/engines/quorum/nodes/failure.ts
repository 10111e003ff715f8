import { EngineError, type FailureReason, UsageError } from "../../../errors.js";
import type { Quorum, Unanswered } from "../voting/quorum.js";

/** Explains, node by node, why too few nodes counted. */
export function tooFew(quorum: Quorum, { effect, absent }: Unanswered, resource?: string) {
  const { size, terms } = quorum;
  const reasons = absent.map(({ node, answer }) => {
    const name = quorum.nameOf(node);
    if (answer === "late") return `${name} did not answer in time`;
    if (answer === "suspect") return `${name} is suspect, its clock was set`;
    if (answer === "skewed") {
      return `the clock of ${name} and those of others are more than ${terms.maxSkewMs} ms apart`;
    }
    if (answer.kind === "failed") return `${name}: ${answer.error.message}`;
    if (answer.kind === "terms") return `${name} belongs to a quorum with "${answer.terms}"`;
    const twin = quorum.quarantine.twinOf(node);
    if (twin !== null) return `${name} is the same server as ${quorum.nameOf(twin)}`;
    const leftMs = quorum.quarantine.leftMs(node);
    const left = leftMs === null ? "" : ` for another ${Math.ceil(leftMs / 1e3)} s`;
    return `${name} is in quarantine${left}`;
  });
  const fresh =
    absent.length === size &&
    absent.every(
      ({ answer }) => typeof answer === "object" && answer.kind === "uncertified" && !answer.lapsed,
    );
  const hint = fresh
    ? '. A new quorum starts at once after "npx @holdfast/cli init" with this URL'
    : "";
  return new EngineError(
    `${terms.writeQuorum} of ${size} nodes must agree, and these did not count: ${reasons.join("; ") || "none"}${hint}`,
    {
      ...{ effect, resource, reason: fresh ? "not-prepared" : reasonOf(absent) },
      // Trying again is useless when the nodes that fail for good leave too few others.
      retryable: absent.filter(isFinal).length <= size - terms.writeQuorum,
    },
  );
}

function isFinal({ answer }: Unanswered["absent"][number]): boolean {
  return typeof answer === "object" && answer.kind === "failed" && !isRetryable(answer.error);
}

function isRetryable(error: unknown): boolean {
  return !(error instanceof EngineError) || error.retryable;
}

/** The most common reason why nodes did not count. */
function reasonOf(absent: Unanswered["absent"]): FailureReason {
  const counts = new Map<FailureReason, number>();
  for (const { answer } of absent) {
    const reason = reasonOfOne(answer);
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const [most] = [...counts].sort(([, a], [, b]) => b - a);
  return most?.[0] ?? "other";
}

function reasonOfOne(answer: Unanswered["absent"][number]["answer"]): FailureReason {
  if (answer === "late") return "unreachable";
  if (typeof answer === "string" || answer.kind !== "failed") return "other";
  return answer.error instanceof EngineError ? answer.error.reason : "other";
}

export function otherTerms(quorum: Quorum, node: number, theirs: string, ours: string) {
  return new UsageError(
    `${quorum.nameOf(node)} belongs to a quorum with "${theirs}", and this client has "${ours}"; ` +
      "all clients of a quorum need the same",
  );
}

export function overtaken(resource: string) {
  return new EngineError(
    "this claim was repeated or released before its first call was answered: the newer call decides",
    { effect: "unknown", retryable: true, resource },
  );
}
