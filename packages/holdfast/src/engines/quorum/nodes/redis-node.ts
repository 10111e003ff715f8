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
/** Requests to a node that hangs pile up: more than this many are refused before they are sent. */
const MOST_UNANSWERED = 10_000;

/** The files of scripts/ in this order are one program: a Lua local is seen only by what follows it. */
const ORDER = ["records", "certificate", "queue", "acquire", "hold", "main"] as const;
const TEXT = ORDER.map((name) => scripts[name]).join("\n");
const SHA = createHash("sha1").update(TEXT).digest("hex");

interface Question {
  readonly request: NodeRequest;
  readonly answered: Answered;
}

/** One real Redis as a node of a quorum. Requests of one turn of the event loop are sent together. */
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

  /** Subscribes to releases and revocations. */
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
      for (const word of encodeOnce(request)) args.push(word);
    }
    const connectionId = () => this.#connection.connectionId?.(keys[0]!, false);
    const sentBy = connectionId();
    const settle = (reply: unknown) => this.#settle(batch, reply, connectionId() === sentBy);
    const fail = (error: unknown) => this.#fail(batch, error, connectionId() === sentBy);
    this.#connection.runScript({ sha: SHA }, keys, args).then(settle, (error: unknown) => {
      // A server that was restarted or flushed has forgotten the script, so nothing ran.
      if (!isMissingScript(error)) return fail(error);
      this.#connection.runScript({ text: TEXT }, keys, args).then(settle, fail);
    });
  }

  /** once: the connection is the same, so the client cannot have resent the batch by itself. */
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
  error: new EngineError("this node has too many unanswered requests, so no more are sent to it", {
    effect: "none",
    retryable: true,
  }),
} as const;

// All nodes get the same request, one right after the other, so the last encoding is kept.
let lastRequest: NodeRequest | null = null;
let lastEncoded: readonly string[] = [];
let lastName = { prefix: "", resource: "", key: "" };

function keyFor(prefix: string, resource: string): string {
  if (lastName.resource !== resource || lastName.prefix !== prefix) {
    lastName = { prefix, resource, key: keyOf(prefix, resource) };
  }
  return lastName.key;
}

function encodeOnce(request: NodeRequest): readonly string[] {
  if (request !== lastRequest) {
    lastRequest = request;
    lastEncoded = encode(request);
  }
  return lastEncoded;
}

/** The operation and its arguments, in the order of the scripts' headers. */
function encode(request: NodeRequest): string[] {
  switch (request.verb) {
    case "acquire": {
      const { id, attempt, mode, ttlMs, delayMs, fence, tokens, order, label } = request;
      const { past, ticket, arrivalMs } = request;
      const numbers = [ttlMs, delayMs, fence, tokens, past, ticket, arrivalMs, order].map(String);
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
