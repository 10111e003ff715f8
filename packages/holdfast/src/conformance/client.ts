import assert from "node:assert";
import { inspect as show } from "node:util";
import { mintGrantId } from "../core/holding/grant-id.js";
import { systemClock } from "../core/runtime/clock.js";
import type {
  Call,
  Claim,
  Engine,
  Granted,
  GrantRef,
  ListFilter,
  ListPage,
  Mode,
  QueueFacet,
  ResourceView,
  Validity,
} from "../engine.js";
import type { LawContext } from "./law-context.js";
import { elapse, within } from "./timing.js";

const CALL_MS = 8_000;
/** Real backends may need a moment until all clients see a change. */
const TURN_MS = 8_000;
/** Backends count in whole milliseconds, and round in either direction. */
const ROUNDING_MS = 10;

/** All clients of a law act for one core: later calls have greater numbers. */
let calls = 0;

export type ClaimTerms = Partial<Omit<Claim, "resource">>;

/** A grant in a client's hands. */
export interface Held {
  readonly claim: Claim;
  readonly granted: Granted;
  readonly token: bigint;
}

/** One engine, called directly. Unlike core, it hides no mistakes of the engine. */
export class Client {
  readonly engine: Engine;
  /** The grants that were pushed, by grantId. */
  readonly pushed = new Map<string, Granted>();
  readonly #context: LawContext;

  constructor(engine: Engine, context: LawContext) {
    this.engine = engine;
    this.#context = context;
    engine.queue?.onGrant((ref, granted) => this.pushed.set(ref.grantId, granted));
  }

  get queue(): QueueFacet {
    assert(this.engine.queue, "a law that uses the queue must say that it needs one");
    return this.engine.queue;
  }

  /** A call that started now, or agoMs ago. */
  call(agoMs = 0): Call {
    return { startedAt: systemClock.now() - agoMs, timeoutMs: CALL_MS, order: ++calls };
  }

  claim(resource: string, terms: ClaimTerms = {}): Claim {
    return {
      resource,
      grantId: mintGrantId(),
      mode: "exclusive",
      limit: null,
      ttlMs: this.#context.ttl(30_000),
      lockDelayMs: 0,
      tokens: 1,
      label: "law",
      ...terms,
    };
  }

  try(claim: Claim, call = this.call()) {
    return within(CALL_MS, this.engine.tryAcquire(claim, call), "tryAcquire");
  }

  enqueue(claim: Claim, call = this.call()) {
    return within(CALL_MS, this.queue.enqueue(claim, call), "enqueue");
  }

  /** Acquires a resource that must be free. */
  async take(resource: string, terms: ClaimTerms = {}): Promise<Held> {
    const claim = this.claim(resource, terms);
    const granted = expectKind(await this.try(claim), "granted", "a claim on a free resource");
    return { claim, granted, token: granted.token };
  }

  /** The claim must be refused, by an answer and not by an error. */
  async refused(resource: string, terms: ClaimTerms = {}, why = "a claim on a held resource") {
    return expectKind(await this.try(this.claim(resource, terms)), "busy", why);
  }

  /** Claims must be refused, in these modes and by every verb. Leaves nothing behind. */
  async keptOut(
    resource: string,
    why: string,
    modes: readonly Mode[] = this.#context.traits.modes,
  ) {
    for (const mode of modes) {
      await this.refused(resource, { mode }, `${mode} tryAcquire: ${why}`);
      if (this.engine.queue === undefined) continue;
      const claim = this.claim(resource, { mode });
      expectKind(await this.enqueue(claim), "queued", `${mode} enqueue: ${why}`);
      expectKind(await this.withdraw(claim), "withdrawn", `a waiter that leaves: ${why}`);
    }
  }

  /** Renews several grants in one call, each with its own ttl. */
  async renewAll(
    batch: readonly { readonly claim: GrantRef; readonly index: number }[],
    ttlOf: (i: number) => number,
    call = this.call(),
  ) {
    const refs = batch.map(({ claim: { resource, grantId }, index }, i) => {
      const ttlMs = this.#context.ttl(ttlOf(i));
      return { resource, grantId, ttlMs, index };
    });
    const answers = await within(CALL_MS, this.engine.renew(refs, call), "renew");
    assert.equal(answers.length, batch.length, "a batch has one answer per grant");
    return answers.map((answer, i) => expectKind(answer, "renewed", `grant ${i} of a batch`));
  }

  /** Joins the queue behind somebody. */
  async wait(resource: string, terms: ClaimTerms = {}): Promise<Claim> {
    const claim = this.claim(resource, terms);
    expectKind(await this.enqueue(claim), "queued", "a waiter behind somebody");
    return claim;
  }

  async heartbeat(waiter: GrantRef, call = this.call()) {
    const [answer] = await this.heartbeats([waiter], call);
    return answer!;
  }

  async heartbeats(waiters: readonly GrantRef[], call = this.call()) {
    const refs = waiters.map(({ resource, grantId }) => ({ resource, grantId }));
    const answers = await within(CALL_MS, this.queue.heartbeat(refs, call), "heartbeat");
    assert.equal(answers.length, waiters.length, "a heartbeat has one answer per waiter");
    return answers;
  }

  /** The waiter must be granted, as its heartbeats must soon show. */
  async untilGranted(claim: Claim, ms = TURN_MS): Promise<Held> {
    const deadline = systemClock.now() + ms;
    for (;;) {
      const answer = await this.heartbeat(claim);
      if (answer.kind === "granted") return { claim, granted: answer, token: answer.token };
      const late = systemClock.now() > deadline;
      if (late || answer.kind !== "queued") {
        assert.fail(`a waiter whose turn it is was answered with ${show(answer)}`);
      }
      await elapse(10);
    }
  }

  /** The waiter must still be in the queue. */
  async stillWaits(claim: Claim, why: string): Promise<void> {
    expectKind(await this.heartbeat(claim), "queued", why);
  }

  withdraw(claim: Claim, call = this.call()) {
    const { resource, grantId } = claim;
    return within(CALL_MS, this.queue.withdraw({ resource, grantId }, call), "withdraw");
  }

  async renew(
    claim: GrantRef,
    ttlMs = this.#context.ttl(30_000),
    call = this.call(),
    more: { readonly index?: number; readonly leave?: boolean } = {},
  ) {
    const { resource, grantId } = claim;
    const work = this.engine.renew([{ resource, grantId, ttlMs, ...more }], call);
    const answers = await within(CALL_MS, work, "renew");
    assert.equal(answers.length, 1, "a renewal has one answer per grant");
    return answers[0]!;
  }

  async release(claim: GrantRef, tombstoneMs = 0) {
    const { resource, grantId } = claim;
    const work = this.engine.release([{ resource, grantId, tombstoneMs }], this.call());
    const answers = await within(CALL_MS, work, "release");
    assert.equal(answers.length, 1, "a release has one answer per grant");
    return answers[0]!;
  }

  /** Releases a grant that must still be held. */
  async releaseHeld(claim: GrantRef): Promise<void> {
    expectKind(await this.release(claim), "released", "the release of a live grant");
  }

  check(resource: string, token: bigint, mode: Mode = "exclusive"): Promise<boolean> {
    return within(CALL_MS, this.engine.check({ resource, mode, token }, this.call()), "check");
  }

  revoke(resource: string, token: bigint, force = false): Promise<"revoked" | "gone"> {
    return within(CALL_MS, this.engine.revoke({ resource, token, force }, this.call()), "revoke");
  }

  inspect(resource: string): Promise<ResourceView> {
    return within(CALL_MS, this.engine.inspect(resource, this.call()), "inspect");
  }

  list(filter: ListFilter): Promise<ListPage> {
    return within(CALL_MS, this.engine.list(filter, this.call()), "list");
  }

  /** Exactly these tokens hold the resource. */
  async holdersAre(resource: string, ...tokens: bigint[]): Promise<void> {
    const view = await this.inspect(resource);
    const sorted = view.holders.map((holder) => holder.token).sort(ascending);
    assert.deepEqual(sorted, [...tokens].sort(ascending), "the tokens of the holders");
  }

  /** The validity that the holder believes in must end no later than the backend's grant. */
  async outlastedByBackend(held: Held, validity: Validity): Promise<void> {
    const view = await this.inspect(held.claim.resource);
    const measuredBy = systemClock.now();
    const holder = view.holders.find(({ token }) => token === held.token);
    assert(holder, "a holder within its validity must be among the holders");
    const overMs = validity.since + validity.ttlMs - (measuredBy + holder.remainingMs);
    assert(
      overMs <= ROUNDING_MS,
      `the answer is good for ${overMs.toFixed(1)} ms longer than the backend keeps the grant`,
    );
  }
}

type OfKind<A, K> = Extract<A, { readonly kind: K }>;

export function expectKind<A extends { readonly kind: string }, K extends A["kind"]>(
  answer: A,
  kind: K,
  who: string,
): OfKind<A, K> {
  if (answer.kind === kind) return answer as OfKind<A, K>;
  assert.fail(`${who} should be answered with "${kind}", and got ${show(answer)}`);
}

export function ascending(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Tokens, in the order of their grants, must strictly rise. */
export function assertRising(tokens: readonly bigint[]): void {
  for (const [i, token] of tokens.entries()) {
    if (i > 0) assert(token > tokens[i - 1]!, `token ${token} came after ${tokens[i - 1]}`);
  }
}
