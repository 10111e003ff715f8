import type { ResourceView } from "../../../engine.js";
import type { NodeAnswer, NodeHolder, NodeRequest } from "../nodes/node.js";
import { broadcast } from "./broadcast.js";
import type { Quorum, Unanswered } from "./quorum.js";
import { absentees } from "./renewal.js";
import { NOT_COUNTED } from "./tally.js";

type PollOutcome = boolean | Unanswered;

/**
 * Whether enough nodes say yes. The answers are about different moments, and a renewal in between can
 * move a grant from one node to another, so noes from different moments prove nothing. A no is
 * therefore asked for twice.
 */
export function poll(
  quorum: Quorum,
  request: NodeRequest,
  isYes: (answer: NodeAnswer) => boolean,
  patienceMs: number,
  done: (outcome: PollOutcome) => void,
): void {
  const { clock } = quorum;
  const until = clock.now() + patienceMs;
  pollOnce(quorum, request, isYes, patienceMs, (outcome) => {
    if (outcome === false) pollOnce(quorum, request, isYes, until - clock.now(), done);
    else done(outcome);
  });
}

/** Asks all nodes the same question: yes if enough say yes, no once enough no longer can. */
function pollOnce(
  quorum: Quorum,
  request: NodeRequest,
  isYes: (answer: NodeAnswer) => boolean,
  patienceMs: number,
  done: (outcome: PollOutcome) => void,
): void {
  const { size, terms } = quorum;
  const answers: (NodeAnswer | null)[] = new Array(size).fill(null);
  let yes = 0;
  let no = 0;
  broadcast(quorum, {
    request: () => request,
    patienceMs,
    heard: (node, answer) => {
      answers[node] = answer;
      if (isYes(answer)) yes++;
      else if (!NOT_COUNTED.has(answer.kind)) no++;
      return yes >= terms.writeQuorum || no > size - terms.writeQuorum;
    },
    ended: () => {
      if (yes >= terms.writeQuorum) done(true);
      else if (no > size - terms.writeQuorum) done(false);
      else done({ kind: "unanswered", effect: "unknown", absent: absentees(answers) });
    },
  });
}

/** Asks whether this node counts now: it answers, and is not in quarantine. */
export function askWhetherCounted(
  quorum: Quorum,
  node: number,
  patienceMs: number,
  done: (counts: boolean) => void,
): void {
  const settle = (counts: boolean) => {
    timer.cancel();
    done(counts);
  };
  const timer = quorum.clock.timer(patienceMs, () => done(false), false);
  const request = { verb: "inspect", resource: "holdfast" } as const;
  quorum.ask(node, request, ({ kind }) => settle(kind === "view"));
}

export interface Survey {
  readonly view: ResourceView;
  /** Nodes that have a holder or a lock-delay, a set of bits. */
  readonly found: number;
}

/** Once enough nodes have answered, the others have this long to answer too. */
const REST_MS = 100;

/**
 * Merges what all nodes say about a resource: a grant is a record that enough nodes have. awaited: nodes
 * whose answer is waited for even if enough others have answered, a set of bits.
 */
export function survey(
  quorum: Quorum,
  resource: string,
  awaited: number,
  patienceMs: number,
  done: (outcome: Survey | Unanswered) => void,
): void {
  const { size, terms, clock } = quorum;
  const answers: (NodeAnswer | null)[] = new Array(size).fill(null);
  let views = 0;
  let answered = 0;
  let missing = awaited;
  let isOpen = true;
  let isResting = false;
  const end = () => {
    if (!isOpen) return;
    isOpen = false;
    timer.cancel();
    if (views < terms.writeQuorum) {
      done({ kind: "unanswered", effect: "none", absent: absentees(answers) });
      return;
    }
    // Each node that did not answer may have the grant, so that many fewer must show it.
    const enough = terms.writeQuorum - (size - views);
    done(merged(resource, answers, Math.max(1, enough)));
  };
  let timer = clock.timer(patienceMs, end, false);
  for (let node = 0; node < size; node++) {
    quorum.ask(node, { verb: "inspect", resource }, (answer) => {
      if (!isOpen) return;
      answers[node] = answer;
      missing &= ~(1 << node);
      if (answer.kind === "view") views++;
      if (!isResting && views >= terms.writeQuorum && missing === 0) {
        isResting = true;
        timer.cancel();
        timer = clock.timer(REST_MS, end, false);
      }
      if (++answered === size) end();
    });
  }
}

function merged(resource: string, answers: readonly (NodeAnswer | null)[], enough: number): Survey {
  const byFence = new Map<string, NodeHolder[]>();
  let found = 0;
  for (const [node, answer] of answers.entries()) {
    if (answer?.kind !== "view" || answer.holders.length === 0) continue;
    found |= 1 << node;
    for (const holder of answer.holders) {
      const key = `${holder.fence} ${holder.label}`;
      const group = byFence.get(key);
      if (group === undefined) byFence.set(key, [holder]);
      else group.push(holder);
    }
  }
  const holders = [];
  let closedMs = 0;
  for (const group of byFence.values()) {
    if (group.length < enough) continue;
    // Until the time of the enough-th node, that many nodes have the grant.
    const [nth] = group.sort((a, b) => b.leftMs - a.leftMs).slice(enough - 1);
    const { leftMs, delayMs, mode, fence, label } = nth!;
    if (leftMs > 0) {
      // Nodes that have not heard of the last renewal yet report an earlier token.
      const index = Math.max(...group.map((one) => one.index));
      const revoked = group.some((one) => one.revoked && one.index === index);
      holders.push({
        ...{ mode: mode === "s" ? ("shared" as const) : ("exclusive" as const), label, revoked },
        ...{ token: BigInt(fence + index), remainingMs: leftMs },
      });
    } else closedMs = Math.max(closedMs, leftMs + delayMs);
  }
  return { view: { resource, holders, waiters: [], closedMs }, found };
}
