import type {
  AcquireRequest,
  NodeAnswer,
  NodeHolder,
  NodeRequest,
  ReleaseRequest,
  RenewRequest,
} from "holdfast/internal/quorum";
import type { NodeFlaws } from "./node-flaws.js";
import { NodeLife } from "./node-life.js";
import { type GrantRecord, NodeMemory, type ResourceState } from "./node-memory.js";
import { enqueue, firstWaiter } from "./node-queue.js";

export interface NodeTerms {
  /** What clients must agree on. With "" a node needs no certificate. */
  readonly agreement: string;
  readonly maxSkewMs: number;
  readonly idleMs: number;
}

/** A node in memory that follows the rules of the scripts. A test compares it with a real Redis. */
export class SimulatedNode {
  memory = new NodeMemory();
  readonly life: NodeLife;
  /** Called with the ticket of the next waiter; 0 for all waiters. */
  onCall: (resource: string, ticket: number) => void = () => {};
  readonly #terms: NodeTerms;
  readonly #flaws: NodeFlaws;
  #us = 0;
  #at = 0;

  constructor(runId: string, replId: string, terms: NodeTerms, flaws: NodeFlaws = {}) {
    this.life = new NodeLife(runId, replId, terms.agreement, flaws);
    this.#terms = terms;
    this.#flaws = flaws;
  }

  /** Handles one request at a time of the node's clock, in µs. */
  handle(request: NodeRequest, us: number, agreement: string = this.#terms.agreement): NodeAnswer {
    this.life.agree(agreement);
    this.#us = us;
    this.#at = Math.floor(us / 1_000);
    switch (request.verb) {
      case "acquire":
        return this.life.objection(this.memory) ?? this.#acquire(request);
      case "renew":
        return this.life.objection(this.memory) ?? this.#renew(request);
      case "release":
        return this.#release(request);
      case "check":
        return (
          this.life.objection(this.memory) ??
          this.#check(request.resource, request.mode, request.token)
        );
      case "revoke":
        return this.#revoke(request.resource, request.token, request.force);
      case "inspect":
        return (
          this.life.objection(this.memory) ?? {
            kind: "view",
            holders: this.#present(this.memory.stateOf(request.resource)).map((r) => this.#view(r)),
          }
        );
      case "mark":
        return this.life.mark(this.memory, request.nonce);
      case "certify":
        return this.life.certify(this.memory, request);
    }
  }

  #acquire(request: AcquireRequest): NodeAnswer {
    const { resource, id, attempt, mode, ttlMs, fence, tokens } = request;
    const state = this.memory.stateOf(resource);
    const grave = state.gone.get(id);
    if (grave !== undefined && grave.ends > this.#at) {
      const covers = grave.upTo >= attempt && grave.order >= request.order;
      if (covers && !this.#flaws.ignoresTombstones) return { kind: "gone", why: "unknown" };
    }
    let own: GrantRecord | null = null;
    const others: GrantRecord[] = [];
    for (const record of this.#present(state)) {
      if (record.id === id && record.ends > this.#at) own = record;
      else if (record.id === id || mode === "x" || record.mode === "x") others.push(record);
    }
    if (own?.revoked) return { kind: "gone", why: "revoked" };
    if (own?.left) return { kind: "gone", why: "unknown" };
    if (own !== null && (own.attempt >= attempt || own.order > request.order)) {
      return this.#repeated(own, request);
    }
    const skewUs = this.#terms.maxSkewMs * 1e3;
    const { past } = request;
    const kept = state.fenceEnds > this.#at ? state.fence : 0;
    // Accepted fences are forgotten with the counter. From then on the clock makes tokens rise.
    if (kept === 0) state.accepted = [];
    const looksAtClock = past === 0 && !this.#flaws.trustsNoClock;
    const counter = looksAtClock ? Math.max(kept, this.#us - skewUs) : kept;
    const isFree = state.records.every((record) => record.id === id);
    const isBehind = () =>
      firstWaiter(state, request, this.#at, isFree, this.#caller(resource)) !== null;
    if (others.length > 0 || (past === 0 && isBehind())) {
      if (request.ticket > 0) enqueue(state, request, this.#at);
      return { kind: "busy", counter, holders: others.map((record) => this.#view(record)) };
    }
    if (fence > this.#us + skewUs) return { kind: "skew" };
    if (!this.#passes(request, counter)) return { kind: "counter", counter };
    state.fence = Math.max(counter, fence + tokens - 1);
    state.fenceEnds = this.#at + this.#terms.idleMs;
    state.accepted.push(fence);
    this.#write(state, {
      ...{ id, mode, attempt, fence, tokens, delay: request.delayMs, label: request.label },
      ...{ index: own?.index ?? 0, revoked: false, left: false, born: this.#at },
      order: Math.max(own?.order ?? 0, request.order),
      ends: Math.max(own?.ends ?? 0, this.#ending(ttlMs)),
    });
    state.called = null;
    return { kind: "accepted" };
  }

  #passes({ fence, past }: AcquireRequest, counter: number): boolean {
    if (past === 0 || this.#flaws.joinsAboveOnly) {
      return this.#flaws.raisesEqual ? fence >= counter : fence > counter;
    }
    return counter <= past || this.#flaws.joinsPastAnyCounter === true;
  }

  #repeated(own: GrantRecord, { ttlMs, order }: AcquireRequest): NodeAnswer {
    if (own.order <= order) {
      if (!this.#flaws.repeatsGiveNoLife) own.ends = Math.max(own.ends, this.#ending(ttlMs));
      own.order = order;
    }
    const { attempt, fence, tokens } = own;
    // The flawed node answers with the full ttl although it did not extend the record.
    const leftMs = this.#flaws.repeatsGiveNoLife ? ttlMs : this.#left(own);
    return { kind: "known", attempt, fence, tokens, leftMs };
  }

  #renew({ resource, id, ttlMs, order, index, leave }: RenewRequest): NodeAnswer {
    const state = this.memory.stateOf(resource);
    const record = this.#alive(state, id);
    if (record === null && this.#flaws.renewalCreates && state.records.length === 0) {
      this.#write(state, {
        ...{ id, mode: "x", attempt: 1, fence: 0, tokens: 1, delay: 0, label: "" },
        ...{ order, index, revoked: false, left: false },
        ...{ ends: this.#ending(ttlMs), born: this.#at },
      });
      return { kind: "renewed", leftMs: ttlMs };
    }
    if (record === null || (record.left && !leave)) return this.#whyGone(state, id);
    if (record.revoked && index <= record.index) return this.#whyGone(state, id);
    if (order < record.order && !this.#flaws.renewsAsTheyArrive) {
      return { kind: "renewed", leftMs: this.#left(record) };
    }
    record.ends = this.#ending(ttlMs);
    record.order = order;
    record.left = leave;
    if (index > record.index) {
      record.index = index;
      record.revoked = false;
    }
    return { kind: "renewed", leftMs: this.#left(record) };
  }

  #release(request: ReleaseRequest): NodeAnswer {
    const { resource, id, upTo, order, tombstoneMs, tell } = request;
    const state = this.memory.stateOf(resource);
    const record = this.#alive(state, id);
    const { endsNewerCalls = false } = this.#flaws;
    const isInTime = record !== null && (record.order <= order || endsNewerCalls);
    const ended = record !== null && !record.left && record.attempt <= upTo && isInTime;
    if (ended) state.records = state.records.filter((one) => one !== record);
    if (tell) this.#callNext(state, request, ended);
    if (tombstoneMs > 0) {
      const before = state.gone.get(id);
      const last = before !== undefined && before.ends > this.#at ? before : { upTo: 0, order: 0 };
      const all = { upTo: Math.max(upTo, last.upTo), order: Math.max(order, last.order) };
      const forMs = Math.min(tombstoneMs, this.#flaws.tombstonesMs ?? Infinity);
      state.gone.set(id, { ...all, ends: this.#at + forMs });
    }
    return ended ? { kind: "released" } : this.#whyGone(state, id);
  }

  #callNext(state: ResourceState, { resource, id }: ReleaseRequest, isEnded: boolean): void {
    state.queue.delete(id);
    if (this.#present(state).length > 0) return;
    const call = this.#caller(resource);
    const first = firstWaiter(state, { id: "", mode: "x", ticket: 0 }, this.#at, true, call);
    if (first === null && isEnded) call(0);
  }

  #caller(resource: string): (ticket: number) => void {
    return (ticket) => this.onCall(resource, ticket);
  }

  #check(resource: string, mode: "x" | "s", token: number): NodeAnswer {
    const record = this.#find(this.memory.stateOf(resource), token);
    return { kind: "checked", live: record?.mode === mode && !record.revoked };
  }

  #revoke(resource: string, token: number, force: boolean): NodeAnswer {
    const state = this.memory.stateOf(resource);
    const record = this.#find(state, token);
    if (record === null || record.fence + record.index !== token) {
      return { kind: "gone", why: "unknown" };
    }
    if (force) state.records = state.records.filter((one) => one !== record);
    else record.revoked = true;
    return { kind: "revoked" };
  }

  #left(record: GrantRecord): number {
    return record.ends - this.#at - 1;
  }

  #ending(ttlMs: number): number {
    return this.#at + ttlMs + 1;
  }

  #find(state: ResourceState, token: number): GrantRecord | null {
    const covers = (r: GrantRecord) =>
      r.ends > this.#at && token >= r.fence && token < r.fence + r.tokens;
    return this.#present(state).find(covers) ?? null;
  }

  #alive(state: ResourceState, id: string): GrantRecord | null {
    for (const record of state.records) {
      if (record.id === id) return record.ends > this.#at ? record : null;
    }
    return null;
  }

  #whyGone(state: ResourceState, id: string): NodeAnswer {
    const present = this.#present(state);
    const own = present.find((record) => record.id === id);
    if (own !== undefined) {
      return { kind: "gone", why: own.revoked && own.ends > this.#at ? "revoked" : "expired" };
    }
    return { kind: "gone", why: present.length > 0 ? "replaced" : "expired" };
  }

  #present(state: ResourceState): GrantRecord[] {
    const { records } = state;
    const delayOf = (record: GrantRecord) => (this.#flaws.keepsNoLockDelay ? 0 : record.delay);
    for (const record of records) {
      if (record.ends + delayOf(record) > this.#at) continue;
      state.records = records.filter((one) => one.ends + delayOf(one) > this.#at);
      break;
    }
    return state.records;
  }

  #write(state: ResourceState, record: GrantRecord): void {
    const i = state.records.findIndex((one) => one.id === record.id);
    if (i < 0) state.records.push(record);
    else state.records[i] = record;
  }

  #view(record: GrantRecord): NodeHolder {
    const { mode, fence, tokens, index, label, ends, delay: delayMs, born, revoked } = record;
    const times = { leftMs: ends - this.#at, delayMs, ageMs: this.#at - born };
    return { mode, fence, tokens, index, label, ...times, revoked };
  }
}
