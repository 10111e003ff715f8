import type { AcquireRequest, NodeAnswer, NodeRequest } from "holdfast/internal/quorum";
import type { ResourceState } from "./nodes/node-memory.js";

export interface SimulatedLease {
  readonly client: number;
  readonly id: string;
  readonly resource: string;
  readonly mode: "x" | "s";
  readonly fence: number;
  readonly tokens: number;
  /** Until when its holder believes that it holds, in the world's time. */
  until: number;
  /**
   * Its lock-delay: nobody may be granted for this long after `until`, unless the lease is
   * released.
   */
  readonly closedMs: number;
  isReleased: boolean;
  readonly grantedAt: number;
}

/** All grants of one resource. */
class GrantHistory {
  readonly leases: SimulatedLease[] = [];
  /** The first token of each exclusive lease, with the lease's id. */
  readonly exclusive = new Map<number, string>();
  readonly revoked = new Set<number>();
  /** Tokens that a node revoked, perhaps before their holder received the grant. */
  readonly touched = new Set<number>();
  highest = 0;
  highestShared = 0;
}

/** Sees all leases at once, which no process in the world can. */
export class Checker {
  readonly #exclusion: boolean;
  readonly #histories = new Map<string, GrantHistory>();
  /** Tombstones by node and id. The node must not accept that id again. */
  readonly #graves = new Set<string>();
  grants = 0;
  violation: string | null = null;

  readonly #now: () => number;

  constructor(exclusion: boolean, now: () => number) {
    this.#exclusion = exclusion;
    this.#now = now;
  }

  granted(lease: SimulatedLease, now: number): void {
    this.grants++;
    const history = this.#of(lease.resource);
    this.#expectAlone(history, lease, now);
    const { highest, highestShared } = history;
    const least = lease.mode === "x" ? Math.max(highest, highestShared) : highest;
    if (lease.fence <= least) {
      this.fail(`token ${lease.fence} was granted to client ${lease.client} after ${least}`);
    }
    const last = lease.fence + lease.tokens - 1;
    if (lease.mode === "x") history.highest = Math.max(highest, last);
    else history.highestShared = Math.max(highestShared, last);
    if (lease.mode === "x") history.exclusive.set(lease.fence, lease.id);
    history.leases.push(lease);
  }

  /** Called right after a node handled a request. */
  handled(
    node: string,
    request: NodeRequest,
    answer: NodeAnswer,
    state: ResourceState | undefined,
  ): void {
    if (request.verb === "release" && request.tell && request.tombstoneMs > 0) {
      this.#graves.add(`${node} ${request.id}`);
    }
    if (request.verb === "revoke" && answer.kind === "revoked") {
      this.#of(request.resource).touched.add(request.token);
    }
    if (request.verb === "acquire" && answer.kind === "accepted") {
      if (this.#graves.has(`${node} ${request.id}`)) {
        this.fail(`${node} accepted what was released there, in spite of the tombstone`);
      }
      if (request.past > 0 && state !== undefined) this.#joined(node, request, state);
    }
  }

  /** Enough nodes revoked this token. From now on no renewal with it may succeed. */
  revoked(resource: string, token: number): void {
    this.#of(resource).revoked.add(token);
  }

  isRevoked(resource: string, token: number): boolean {
    return this.#of(resource).revoked.has(token);
  }

  /**
   * So many nodes answered no that no majority can have the grant. Its holder must not believe in
   * it.
   */
  checkedDead(resource: string, token: number, askedAt: number): void {
    const { leases, touched } = this.#of(resource);
    const lease = leases.find((one) => token >= one.fence && token < one.fence + one.tokens);
    if (lease === undefined || lease.isReleased) return;
    // Revoking one token marks the record, and so all of its tokens.
    for (const one of touched) {
      if (one >= lease.fence && one < lease.fence + lease.tokens) return;
    }
    if (!this.#exclusion || lease.grantedAt > askedAt) return;
    if (lease.until <= this.#now()) return;
    this.fail(`a check says that token ${token} is dead, and client ${lease.client} holds it`);
  }

  /** A node that lost its memory has no tombstones. */
  forgot(node: string): void {
    for (const grave of this.#graves) if (grave.startsWith(`${node} `)) this.#graves.delete(grave);
  }

  fail(violation: string): void {
    this.violation ??= violation;
  }

  /**
   * A grant may join a node only if the node accepted no later grant. A claim that was repeated
   * through another client may have two grants of its own.
   */
  #joined(
    node: string,
    { resource, id, fence }: AcquireRequest,
    { accepted }: ResourceState,
  ): void {
    const { exclusive } = this.#of(resource);
    const successor = accepted.find(
      (one) => one > fence && exclusive.has(one) && exclusive.get(one) !== id,
    );
    if (successor === undefined) return;
    this.fail(`${node} let token ${fence} join after ${successor}, which was granted there`);
  }

  #of(resource: string): GrantHistory {
    let history = this.#histories.get(resource);
    if (history === undefined) {
      history = new GrantHistory();
      this.#histories.set(resource, history);
    }
    return history;
  }

  #expectAlone({ leases }: GrantHistory, lease: SimulatedLease, now: number): void {
    if (!this.#exclusion) return;
    for (const other of leases) {
      if (other.isReleased || other.until + other.closedMs <= now) continue;
      if (lease.mode === "s" && other.mode === "s") continue;
      this.fail(
        `at ${now.toFixed(3)} ms client ${lease.client} was granted what client ${other.client} ` +
          `holds until ${other.until.toFixed(3)} ms, closed for ${other.closedMs.toFixed(3)} ms more`,
      );
    }
  }
}
