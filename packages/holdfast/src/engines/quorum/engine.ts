import type { Clock, Timer } from "../../core/runtime/clock.js";
import type {
  Busy,
  Call,
  Claim,
  Engine,
  EngineTraits,
  Failed,
  Gone,
  Granted,
  ListFilter,
  ListPage,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  WatchFacet,
} from "../../engine.js";
import { failed } from "../../engine-kit/settle-each.js";
import { EngineError, UnsupportedError, UsageError } from "../../errors.js";
import { emit } from "../../events.js";
import { acquireAnswer, renewalAnswer } from "./answers.js";
import { listPage } from "./listing.js";
import { tooFew } from "./nodes/failure.js";
import { IdleProbe } from "./nodes/idle-probe.js";
import type { ModeCode } from "./nodes/node.js";
import type { RedisNode } from "./nodes/redis-node.js";
import type { ReleaseNotifications } from "./nodes/release-notifications.js";
import { QUORUM_DEFAULTS, type ResolvedQuorum } from "./options.js";
import { askWhetherCounted, poll, survey } from "./voting/polls.js";
import {
  type AcquireOutcome,
  type Environment,
  Quorum,
  type QuorumEvent,
} from "./voting/quorum.js";

export const QUORUM_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 100, maxMs: QUORUM_DEFAULTS.maxTtlMs, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: false,
  lockDelay: true,
  fencing: "clock",
  tokenRange: 1024,
  leaves: true,
};

export interface QuorumEngineTraits extends EngineTraits {
  /** The number of nodes that may forget an acknowledged token at once without tokens going back. */
  readonly mayForget: number;
}

export interface QuorumEngineParts {
  readonly nodes: readonly RedisNode[];
  readonly terms: ResolvedQuorum;
  readonly notifications: ReleaseNotifications;
  readonly clock: Clock;
  readonly random: () => number;
  readonly mintNonce: () => string;
}

/** Redlock with a fencing token: a grant is what W of N independent nodes have accepted. */
export class QuorumEngine implements Engine {
  readonly name = "quorum";
  readonly traits: QuorumEngineTraits;
  readonly #nodes: readonly RedisNode[];
  readonly #terms: ResolvedQuorum;
  readonly #notifications: ReleaseNotifications;
  readonly #quorum: Quorum;
  readonly #clock: Clock;
  readonly #idleProbe: IdleProbe;
  #closed = false;

  constructor({ nodes, terms, notifications, clock, random, mintNonce }: QuorumEngineParts) {
    this.#nodes = nodes;
    this.#terms = terms;
    this.#notifications = notifications;
    this.#clock = clock;
    const report = (event: QuorumEvent) =>
      emit("node", () => ({ ...event, node: this.#quorum.nameOf(event.node) }));
    const environment: Environment = { clock, random, mintNonce, report };
    this.#quorum = new Quorum(nodes, terms, environment);
    notifications.serve(this.#quorum);
    this.#idleProbe = new IdleProbe(this.#quorum, clock, terms.maxTtlMs);
    this.traits = traitsFor(terms);
  }

  /** Starts to listen for notifications, and learns what the nodes' clocks read. */
  async open(): Promise<void> {
    const { nodeTimeoutMs } = this.#terms;
    this.#idleProbe.start();
    const heard = Promise.all(this.#nodes.map((node) => node.listen()));
    // Sockets and the quorum's own timers do not keep a process alive, but a pending open() must.
    // This timer also bounds the wait for a node that hangs: notifications only make things fast.
    let stay: Timer | undefined;
    const enough = new Promise<void>((go) => {
      stay = this.#clock.timer(nodeTimeoutMs, go, true);
    });
    // Any request will do: every answer carries the node's time and whether it is certified.
    const told = new Promise<void>((go) =>
      survey(this.#quorum, "holdfast", 0, nodeTimeoutMs, () => go()),
    );
    await Promise.race([Promise.all([heard, told]), enough]);
    stay?.cancel();
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    this.#refuseWhenClosed();
    this.#refuseLimit(claim);
    const { resource, grantId: id, ttlMs, tokens, label } = claim;
    const delayMs = Math.ceil(claim.lockDelayMs);
    const error = this.#tooLong(resource, ttlMs, delayMs);
    if (error !== null) throw error;
    for (const node of this.#nodes) void node.listen();
    this.#idleProbe.start();
    const mode = modeCodeOf(claim.mode);
    const wanted = { resource, id, mode, ttlMs, delayMs, tokens, label };
    const asking = { patienceMs: most(call.timeoutMs), order: call.order };
    const outcome = await new Promise<AcquireOutcome>((done) =>
      this.#quorum.acquire(wanted, asking, done),
    );
    const { agreement } = this.#terms;
    return acquireAnswer(this.#quorum, outcome, resource, call.startedAt, agreement);
  }

  renew(
    grants: readonly RenewRef[],
    { startedAt, order }: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    const { agreement } = this.#terms;
    return this.#each(grants, (ref, settle) => {
      const { resource, grantId: id, ttlMs, index = 0, leave = false } = ref;
      const error = this.#tooLong(resource, ttlMs, this.#quorum.lockDelayOf(id));
      if (error !== null) settle({ kind: "failed", effect: "none", error });
      else {
        this.#quorum.renew({ resource, id, ttlMs, order, index, leave }, (outcome) =>
          settle(renewalAnswer(this.#quorum, outcome, resource, startedAt, agreement)),
        );
      }
    });
  }

  release(
    grants: readonly ReleaseRef[],
    { timeoutMs }: Call,
  ): Promise<readonly (Released | Gone | Failed)[]> {
    return this.#each(grants, ({ resource, grantId: id, tombstoneMs }, settle) =>
      this.#quorum.release({ resource, id, tombstoneMs, patienceMs: most(timeoutMs) }, (outcome) =>
        settle(
          outcome.kind === "unanswered" ? failed(tooFew(this.#quorum, outcome, resource)) : outcome,
        ),
      ),
    );
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    if (!isPossible(token)) return false;
    const request = {
      verb: "check",
      resource,
      mode: modeCodeOf(mode),
      token: Number(token),
    } as const;
    return this.#poll(request, call, (answer) => answer.kind === "checked" && answer.live);
  }

  async revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    if (!isPossible(token)) return "gone";
    const request = { verb: "revoke", resource, token: Number(token), force } as const;
    return (await this.#poll(request, call, ({ kind }) => kind === "revoked")) ? "revoked" : "gone";
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    this.#refuseWhenClosed();
    return (await this.#survey(resource, 0, call)).view;
  }

  async list(filter: ListFilter, call: Call): Promise<ListPage> {
    this.#refuseWhenClosed();
    const { prefix, writeQuorum } = this.#terms;
    const survey = (resource: string, awaited: number) => this.#survey(resource, awaited, call);
    const patienceMs = Math.min(this.#terms.nodeTimeoutMs, most(call.timeoutMs));
    const counts = (node: number) =>
      new Promise<boolean>((done) => askWhetherCounted(this.#quorum, node, patienceMs, done));
    return listPage({ nodes: this.#nodes, prefix, writeQuorum, survey, counts }, filter);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#idleProbe.close();
    this.#quorum.close();
    this.#notifications.close();
    for (const node of this.#nodes) node.close();
  }

  readonly watch: WatchFacet = {
    onChange: (listener) => this.#notifications.onChange(listener),
  };

  async #poll(
    request: Parameters<typeof poll>[1],
    { timeoutMs }: Call,
    isYes: Parameters<typeof poll>[2],
  ): Promise<boolean> {
    this.#refuseWhenClosed();
    const outcome = await new Promise<boolean | Parameters<typeof tooFew>[1]>((done) =>
      poll(this.#quorum, request, isYes, most(timeoutMs), done),
    );
    if (typeof outcome === "boolean") return outcome;
    throw tooFew(this.#quorum, outcome);
  }

  async #survey(resource: string, awaited: number, { timeoutMs }: Call) {
    const outcome = await new Promise<Parameters<Parameters<typeof survey>[4]>[0]>((done) =>
      survey(this.#quorum, resource, awaited, most(timeoutMs), done),
    );
    if ("kind" in outcome) throw tooFew(this.#quorum, outcome, resource);
    return outcome;
  }

  async #each<R, A>(
    refs: readonly R[],
    ask: (ref: R, settle: (answer: A) => void) => void,
  ): Promise<readonly A[]> {
    this.#refuseWhenClosed();
    return Promise.all(refs.map((ref) => new Promise<A>((settle) => ask(ref, settle))));
  }

  #refuseLimit({ resource, limit }: Claim): void {
    if (limit === null) return;
    throw new UnsupportedError(
      "a quorum cannot count shared grants: docs/engines/quorum.md of the package holdfast",
      {
        resource,
      },
    );
  }

  /** A node that forgets a grant forgets its lock-delay too: its quarantine must outlast both. */
  #tooLong(resource: string, ttlMs: number, lockDelayMs: number): UsageError | null {
    const { maxTtlMs } = this.#terms;
    if (ttlMs + lockDelayMs <= maxTtlMs) return null;
    return new UsageError(
      `ttlMs ${ttlMs} and lockDelayMs ${lockDelayMs} are together more than maxTtlMs, which is ${maxTtlMs} ` +
        "for this quorum",
      { resource },
    );
  }

  #refuseWhenClosed(): void {
    if (!this.#closed) return;
    throw new EngineError("the quorum engine was closed", { effect: "none", retryable: false });
  }
}

export function traitsFor(terms: ResolvedQuorum): QuorumEngineTraits {
  const mayForget = 2 * terms.writeQuorum - terms.names.length - 1;
  return { ...QUORUM_TRAITS, ttl: { ...QUORUM_TRAITS.ttl, maxMs: terms.maxTtlMs }, mayForget };
}

function modeCodeOf(mode: Claim["mode"]): ModeCode {
  return mode === "shared" ? "s" : "x";
}

/** The core stops waiting when the call ends, so the answers must have been counted before that. */
function most(timeoutMs: number): number {
  return timeoutMs * 0.8;
}

/** A node compares tokens as Lua numbers, so no larger token can have come from this engine. */
function isPossible(token: bigint): boolean {
  return token >= 0n && token <= BigInt(Number.MAX_SAFE_INTEGER);
}
