import type { NodeAnswer, NodeRequest } from "../nodes/node.js";

/** What a broadcast needs from the quorum. */
export interface NodeSet {
  readonly size: number;
  readonly clock: QuorumClock;
  ask(node: number, request: NodeRequest, answered: (answer: NodeAnswer) => void): void;
}

/** The part of the core's clock that the quorum uses; the simulator brings its own. */
export interface QuorumClock {
  now(): number;
  timer(delayMs: number, callback: () => void, keepAlive: boolean): { cancel(): void };
}

export interface Broadcast {
  request(node: number): NodeRequest;
  readonly patienceMs: number;
  /** Called for each answer. True ends the wait for the other answers. */
  heard(node: number, answer: NodeAnswer): boolean;
  /** Called once: when heard() returned true, when all nodes answered, or after patienceMs. */
  ended(): void;
  /** An answer that came after the end. */
  late?(node: number, answer: NodeAnswer): void;
  /** Called once, after ended(), with the nodes that did not answer in time, a set of bits. */
  over?(silent: number): void;
}

/** Asks all nodes in parallel. A node that hangs costs no time once enough others have answered. */
export function broadcast(nodes: NodeSet, plan: Broadcast) {
  const { size } = nodes;
  let missing = (1 << size) - 1;
  let isOpen = true;
  let isOver = false;
  let timer: { cancel(): void } | null = null;
  const end = () => {
    isOpen = false;
    plan.ended();
  };
  const close = () => {
    if (isOver) return;
    isOver = true;
    timer?.cancel();
    if (isOpen) end();
    plan.over?.(missing);
  };
  for (let node = 0; node < size; node++) {
    nodes.ask(node, plan.request(node), (answer) => {
      missing &= ~(1 << node);
      if (!isOpen) plan.late?.(node, answer);
      else if (plan.heard(node, answer)) end();
      if (missing === 0) close();
    });
  }
  if (missing !== 0) timer = nodes.clock.timer(plan.patienceMs, close, false);
}
