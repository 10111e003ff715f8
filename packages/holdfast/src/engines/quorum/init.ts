import { sleep, systemClock } from "../../core/runtime/clock.js";
import { EngineError, UsageError } from "../../errors.js";
import type { NodeAnswer, NodeRequest, QuorumNode, Uncertified } from "./nodes/node.js";
import type { ResolvedQuorum } from "./options.js";
import { Quorum } from "./voting/quorum.js";

const PATIENCE_MS = 5_000;
const LOOK_MS = 200;

/**
 * Certifies all nodes at once if none is certified, because then nobody can hold anything. Where some
 * nodes are certified, the others must wait: a grant that they forgot may still be held.
 */
export async function certifyNewQuorum(
  nodes: readonly QuorumNode[],
  terms: ResolvedQuorum,
  mintNonce: () => string,
): Promise<void> {
  const seen = await Promise.all(
    nodes.map((node) => asked(node, { verb: "mark", nonce: mintNonce() })),
  );
  for (const [i, answer] of seen.entries()) {
    if (answer.kind !== "terms") continue;
    throw new UsageError(
      `${nodes[i]!.name} belongs to a quorum with "${answer.terms}", and this is "${terms.agreement}"; ` +
        "docs/engines/quorum.md of the package holdfast says how members are changed",
    );
  }
  refuseTwins(nodes, seen);
  if (seen.some(({ kind }) => kind === "certified")) return;
  await Promise.all(
    nodes.map(async (node, i) => {
      const { runId, replId, nonce } = seen[i] as Uncertified;
      const request = { verb: "certify", runId, replId, nonce: nonce ?? "" } as const;
      const answer = await asked(node, request);
      if (answer.kind === "certified") return;
      throw new EngineError(`${node.name} was restarted or emptied during init; run init again`, {
        ...{ effect: "unknown", retryable: true },
      });
    }),
  );
}

/** Resolves when all nodes count. Waits for the nodes in quarantine, and certifies them. */
export async function waitOutQuarantines(
  nodes: readonly QuorumNode[],
  terms: ResolvedQuorum,
  mintNonce: () => string,
): Promise<void> {
  const environment = { clock: systemClock, random: () => 0.5, mintNonce, report: () => {} };
  const quorum = new Quorum(nodes, terms, environment);
  const members = nodes.map((node, i): QuorumNode => {
    return {
      name: node.name,
      ask: (request, answered) => quorum.ask(i, request, (a) => answered(a, 0)),
    };
  });
  // A node that is emptied again starts its quarantine again.
  const until = systemClock.now() + 3 * terms.maxTtlMs + 2 * PATIENCE_MS;
  try {
    for (;;) {
      const look = { verb: "inspect", resource: "holdfast" } as const;
      const seen = await Promise.all(members.map((node) => asked(node, look)));
      const waiting = nodes.filter((_, i) => seen[i]!.kind === "uncertified");
      if (waiting.length === 0) return;
      if (systemClock.now() > until) {
        const names = waiting.map(({ name }) => name).join(", ");
        throw new EngineError(`still in quarantine: ${names}`, { effect: "none", retryable: true });
      }
      await sleep(systemClock, LOOK_MS, undefined);
    }
  } finally {
    quorum.close();
  }
}

/** A server with two names has two votes, and could be a majority on its own. */
function refuseTwins(nodes: readonly QuorumNode[], seen: readonly NodeAnswer[]): void {
  const names = new Map<string, string>();
  for (const [i, answer] of seen.entries()) {
    if (answer.kind !== "uncertified") continue;
    const { name } = nodes[i]!;
    const other = names.get(answer.runId);
    if (other !== undefined) {
      throw new UsageError(
        `${other} and ${name} are one server; the nodes of a quorum must share nothing, so name ` +
          "each server once",
      );
    }
    names.set(answer.runId, name);
  }
}

/** All nodes must answer: a node that is left out would have to wait for a whole quarantine. */
function asked(node: QuorumNode, request: NodeRequest): Promise<NodeAnswer> {
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: Error) =>
      reject(
        new EngineError(`${node.name}: ${why}`, {
          ...{ effect: "unknown", retryable: true, cause },
          reason: cause instanceof EngineError ? cause.reason : "unreachable",
        }),
      );
    const late = () => fail(`no answer within ${PATIENCE_MS} ms`);
    const timer = systemClock.timer(PATIENCE_MS, late, true);
    node.ask(request, (answer) => {
      timer.cancel();
      if (answer.kind === "failed") fail(answer.error.message, answer.error);
      else resolve(answer);
    });
  });
}
