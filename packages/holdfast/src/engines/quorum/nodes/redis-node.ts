import { createHash } from "node:crypto";
import { EngineError, inDoubt } from "../../../errors.js";
import type { RedisConnection } from "../../redis/clients/connection.js";
import { Notifications } from "../../redis/notifications/notifications.js";
import { explain, isMissingScript } from "../../redis/protocol/failure.js";
import { keyOf, resourceOf } from "../../redis/protocol/keys.js";
import type { ResolvedQuorum } from "../options.js";
import { readReply } from "./decode.js";
import type { Answered, NodeRequest, QuorumNode } from "./node.js";
import { scripts } from "./scripts.gen.js";

const MAX_BATCH = 256;
/** A node that hangs keeps what it was asked: more than this is refused before it is sent. */
const MOST_UNANSWERED = 10_000;

const TEXT = Object.keys(scripts)
  .sort()
  .map((name) => scripts[name as keyof typeof scripts])
  .join("\n");
const SHA = createHash("sha1").update(TEXT).digest("hex");

interface Question {
  readonly request: NodeRequest;
  readonly answered: Answered;
}

/** One real Redis as a node of a quorum. What is asked in one turn of the event loop travels together. */
export class RedisNode implements QuorumNode {
  readonly name: string;
  readonly #connection: RedisConnection;
  readonly #terms: ResolvedQuorum;
  readonly #notifications: Notifications;
  #waiting: Question[] = [];
  #unanswered = 0;

  constructor(
    name: string,
    connection: RedisConnection,
    terms: ResolvedQuorum,
    changed: (resource: string, ticket: number) => void,
  ) {
    this.name = name;
    this.#connection = connection;
    this.#terms = terms;
    this.#notifications = new Notifications(connection, terms.prefix, (_channel, message) => {
      const [, ticket, key] = /^(\d+) (.*)$/s.exec(message) ?? [];
      const at = key === undefined ? null : resourceOf(terms.prefix, key);
      if (at !== null) changed(at.resource, Number(ticket));
    });
  }

  ask(request: NodeRequest, answered: Answered) {
    if (this.#unanswered >= MOST_UNANSWERED) return answered(TOO_MANY, Number.NaN);
    this.#unanswered++;
    if (this.#waiting.length === 0) process.nextTick(() => this.#flush());
    this.#waiting.push({ request, answered });
  }

  /** Hears of releases and revocations from now on. */
  listen(): Promise<void> {
    return this.#notifications.listen();
  }

  scan(cursor: string | null, max: number): Promise<[string | null, string[]]> {
    const prefix = this.#terms.prefix.replace(/[\\*?[\]]/g, "\\$&");
    return this.#connection.scan(cursor, `${prefix}*`, max);
  }

  close(): void {
    this.#notifications.close();
    this.#connection.close();
  }

  #flush(): void {
    const all = this.#waiting;
    this.#waiting = [];
    for (let i = 0; i < all.length; i += MAX_BATCH) this.#send(all.slice(i, i + MAX_BATCH));
  }

  #send(batch: readonly Question[]): void {
    const { prefix, agreement, maxSkewMs, idleMs } = this.#terms;
    const tag = `{${prefix}}`;
    const keys: string[] = [];
    const args = [
      tag,
      agreement,
      this.#notifications.changesChannel,
      String(maxSkewMs * 1e3),
      String(idleMs),
    ];
    for (const { request } of batch) {
      keys.push("resource" in request ? keyFor(prefix, request.resource) : tag);
      for (const word of wordsOf(request)) args.push(word);
    }
    const connectionId = () => this.#connection.connectionId?.(keys[0]!, false);
    const sentBy = connectionId();
    const settle = (reply: unknown) => this.#settle(batch, reply, connectionId() === sentBy);
    const fail = (error: unknown) => this.#fail(batch, error, connectionId() === sentBy);
    this.#connection.runScript({ sha: SHA }, keys, args).then(settle, (error: unknown) => {
      // A server that was restarted or flushed has forgotten the script; nothing ran then.
      if (!isMissingScript(error)) return fail(error);
      this.#connection.runScript({ text: TEXT }, keys, args).then(settle, fail);
    });
  }

  /** once: whether the client cannot have sent it twice by itself. */
  #settle(batch: readonly Question[], reply: unknown, once: boolean): void {
    let read: ReturnType<typeof readReply>;
    try {
      const verbs = batch.map(({ request }) => request.verb);
      read = readReply(reply, verbs);
    } catch (error) {
      this.#fail(batch, error, once);
      return;
    }
    this.#unanswered -= batch.length;
    for (const [i, { answered }] of batch.entries()) {
      const answer = read.answers[i]!;
      const isDoubtful = answer.kind === "failed" && !once;
      answered(isDoubtful ? { ...answer, effect: "unknown" } : answer, read.us);
    }
  }

  #fail(batch: readonly Question[], error: unknown, once: boolean): void {
    this.#unanswered -= batch.length;
    const failure = once ? explain(error) : inDoubt(explain(error));
    const effect = failure instanceof EngineError ? failure.effect : "unknown";
    for (const { answered } of batch) {
      answered({ kind: "failed", effect, error: failure }, Number.NaN);
    }
  }
}

const TOO_MANY = {
  kind: "failed",
  effect: "none",
  error: new EngineError("this node has not answered for so long that nothing more is sent to it", {
    effect: "none",
    retryable: true,
  }),
} as const;

// All nodes are asked the same, one right after the other: what was just put into words is kept.
let lastRequest: NodeRequest | null = null;
let lastWords: readonly string[] = [];
let lastName = { prefix: "", resource: "", key: "" };

function keyFor(prefix: string, resource: string): string {
  if (lastName.resource !== resource || lastName.prefix !== prefix) {
    lastName = { prefix, resource, key: keyOf(prefix, resource) };
  }
  return lastName.key;
}

function wordsOf(request: NodeRequest): readonly string[] {
  if (request !== lastRequest) {
    lastRequest = request;
    lastWords = inWords(request);
  }
  return lastWords;
}

/** The operation and its arguments, in the order that the scripts' headers give. */
function inWords(request: NodeRequest): string[] {
  switch (request.verb) {
    case "acquire": {
      const { id, attempt, mode, ttlMs, delayMs, fence, tokens, order, label } = request;
      const { past, ticket, wayMs } = request;
      const numbers = [ttlMs, delayMs, fence, tokens, past, ticket, wayMs, order].map(String);
      return ["acquire", id, String(attempt), mode, ...numbers, label];
    }
    case "renew": {
      const { id, ttlMs, order, index, leave } = request;
      return ["renew", id, ...[ttlMs, order, index, Number(leave)].map(String)];
    }
    case "release": {
      const { id, upTo, order, tombstoneMs, tell } = request;
      return ["release", id, ...[upTo, order, tombstoneMs, Number(tell)].map(String)];
    }
    case "check":
      return ["check", request.mode, String(request.token)];
    case "revoke":
      return ["revoke", String(request.token), request.force ? "1" : "0"];
    case "inspect":
      return ["inspect"];
    case "mark":
      return ["mark", request.nonce];
    case "certify":
      return ["certify", request.runId, request.replId, request.nonce];
  }
}
