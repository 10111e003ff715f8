import { Agent, type ClientRequest, request as httpRequest } from "node:http";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import type { Socket } from "node:net";
import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { Endpoint, EtcdTerms } from "../options.js";
import { AuthToken } from "./auth-token.js";
import { isMalformed, isOutOfSpace, isStaleToken, silence } from "./failure.js";
import { answerTo, isLate, late, lines, parsed, valueIn } from "./gateway-protocol.js";
import type { RawTxn, Txn } from "./requests.js";
import { type Check, tokenAnswer, txnAnswer, type WatchMessage, watchMessage } from "./shapes.js";

const MOST_SOCKETS = 64;
const MOST_TRIES = 32;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 400;
// A member that is silent for this part of a call's time is left for the next one.
const SHARE_OF_TIME = 3;
const SHORTEST_TRY_MS = 150;
const STREAM_MS = 2_000;
const AUTHENTICATE = "/v3/auth/authenticate";
// All calls wait for one authentication: on a connection that broke without a word, that would be for long.
const AUTHENTICATION = { repeatable: true, urgent: true, firstTryMs: 1_000 } as const;

export interface CallOptions {
  /** On the engine's clock. */
  readonly deadline: number;
  /** Whether the same request once more does no harm and has the same answer. */
  readonly repeatable: boolean;
  /** Keeps leases alive, and must not wait behind a crowd of claims. */
  readonly urgent?: boolean;
  /** A try without an answer for so long is followed by another, which has twice the time. */
  readonly firstTryMs?: number;
}

export interface Stream {
  close(): void;
}

/** Told of every answer that a majority stands behind: which leader's term it was, and when it was asked. */
export type OnAnswer = (term: string, askedAt: number) => void;

/** etcd's JSON gateway at one of several members, over connections that are kept. */
export class EtcdClient {
  readonly #terms: EtcdTerms;
  readonly #agents: { readonly usual: Agent; readonly urgent: Agent; readonly streams: Agent };
  readonly #streams = new Set<ClientRequest>();
  #at = 0;
  readonly #authToken: AuthToken;
  #closed = false;
  /** Told when calls go to another member from now on. */
  onMove: () => void = () => {};
  onAnswer: OnAnswer = () => {};

  constructor(terms: EtcdTerms) {
    this.#terms = terms;
    const agent = (options: object) =>
      terms.tls === null ? new Agent(options) : new TlsAgent({ ...options, ...terms.tls });
    const kept = { keepAlive: true, maxSockets: MOST_SOCKETS };
    this.#authToken = new AuthToken(terms.user, (user, deadline) =>
      this.call(AUTHENTICATE, user, tokenAnswer, { deadline, ...AUTHENTICATION }),
    );
    this.#agents = { usual: agent(kept), urgent: agent(kept), streams: agent({}) };
  }

  /**
   * Reads and writes of keys: each answer is vouched for by a majority. What is only read is read so, too:
   * a plain reading of nothing is answered by nothing, and this by one answer for each operation.
   */
  async txn(txn: Txn, options: CallOptions): Promise<RawTxn> {
    const [answer, askedAt] = await this.#call("/v3/kv/txn", txn, txnAnswer(txn), options);
    this.onAnswer(answer.header.raft_term ?? "0", askedAt);
    return answer;
  }

  async call<T>(path: string, body: object, check: Check<T>, options: CallOptions): Promise<T> {
    return (await this.#call(path, body, check, options))[0];
  }

  /** Messages of a watch, until it ends or is closed. It does not keep the process alive. */
  stream(body: string, onMessage: (message: WatchMessage) => void, onEnd: () => void): Stream {
    let open = true;
    let request: ClientRequest | null = null;
    let leave = () => {};
    const end = () => {
      if (request !== null) this.#streams.delete(request);
      if (open) {
        // No call may follow for long that would find out.
        if (!this.#closed) leave();
        onEnd();
      }
      open = false;
    };
    const hear = (line: string) => {
      const message = readable(line);
      if (message === null) request?.destroy();
      else onMessage(message);
    };
    const start = (token: string | null) => {
      if (!open || this.#closed) return;
      const endpoint = this.#endpoint;
      leave = () => this.#leave(endpoint);
      request = this.#request("/v3/watch", body, token, endpoint, this.#agents.streams);
      // A member that is cut off from the others tells nothing; so it ends its watches instead.
      request.setHeader("Grpc-Metadata-hasleader", "true");
      this.#streams.add(request);
      request.on("socket", (socket: Socket) => socket.unref());
      request.on("error", end).on("close", end);
      // One that hangs takes the connection all the same.
      const timer = systemClock.timer(STREAM_MS, () => request?.destroy(), false);
      request.on("close", () => timer.cancel());
      request.on("response", (response) => {
        timer.cancel();
        // A stale token is one reason; the next call finds out.
        if (response.statusCode !== 200) request?.destroy();
        else lines(response, (line) => open && hear(line));
      });
      request.end(body);
    };
    // Without a token the watch fails later, by itself.
    this.#authToken.get(systemClock.now() + STREAM_MS).then(start, end);
    return {
      close: () => {
        open = false;
        request?.destroy();
      },
    };
  }

  /** Whatever is under way fails at once, and is not tried again. */
  close(): void {
    this.#closed = true;
    for (const stream of this.#streams) stream.destroy();
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  get #endpoint(): Endpoint {
    return this.#terms.endpoints[this.#at]!;
  }

  /**
   * Goes from member to member until one answers or the time is over. What may have been done already
   * is asked again only where that does no harm; and if that fails too, the effect stays unknown.
   */
  async #call<T>(
    path: string,
    body: object,
    check: Check<T>,
    options: CallOptions,
  ): Promise<[T, number]> {
    const text = JSON.stringify(body);
    let doubtful = false;
    let failure: EngineError | null = null;
    const usesToken = path !== AUTHENTICATE;
    let tryMs = options.firstTryMs;
    for (let tried = 0; tried < MOST_TRIES; tried++) {
      if (options.deadline <= systemClock.now()) break;
      const endpoint = this.#endpoint;
      let token: string | null = null;
      let isStale = false;
      try {
        if (usesToken) token = await this.#authToken.get(options.deadline);
        const askedAt = systemClock.now();
        const leftMs = options.deadline - askedAt;
        const value = await this.#once(path, text, token, endpoint, leftMs, options, tryMs);
        return [check(value), askedAt];
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        doubtful ||= error.effect === "unknown";
        if (tryMs !== undefined && isLate(error)) tryMs *= 2;
        isStale = isStaleToken(error);
        // That the time ran out says less than what went wrong before, unless that was put right.
        const before: EngineError | null = isStaleToken(failure) ? null : failure;
        failure = isLate(error) ? (before ?? error) : error;
        if (!usesToken) this.#authToken.failure = error;
      }
      if (isStale) {
        this.#authToken.refused(token);
        continue;
      }
      if (!failure.retryable || this.#closed) break;
      this.#leave(endpoint);
      // Whoever speaks nonsense once is not asked again and again for it.
      if ((doubtful && !options.repeatable) || isMalformed(failure)) break;
      // The quota is the cluster's: who has asked each member once need not ask again.
      if (isOutOfSpace(failure) && tried + 1 >= this.#terms.endpoints.length) break;
      await this.#pause(tried, options.deadline);
    }
    const { message, retryable, reason, cause } = failure ?? silence(this.#name, late(), false);
    const effect = doubtful ? "unknown" : "none";
    throw new EngineError(message, { effect, retryable, reason, cause });
  }

  async #once(
    path: string,
    text: string,
    token: string | null,
    endpoint: Endpoint,
    leftMs: number,
    { urgent = false }: CallOptions,
    tryMs: number | undefined,
  ): Promise<unknown> {
    const others = this.#terms.endpoints.length > 1;
    const shareMs = others ? Math.max(leftMs / SHARE_OF_TIME, SHORTEST_TRY_MS) : leftMs;
    const timeMs = Math.min(tryMs ?? Infinity, shareMs);
    const agent = urgent ? this.#agents.urgent : this.#agents.usual;
    const request = this.#request(path, text, token, endpoint, agent);
    const { status, body } = await answerTo(request, text, Math.min(timeMs, leftMs), this.#name);
    return valueIn(status, body);
  }

  #request(
    path: string,
    text: string,
    token: string | null,
    { host, port }: Endpoint,
    agent: Agent,
  ): ClientRequest {
    const options = {
      ...{ host, port, path, method: "POST", agent },
      headers: {
        "Content-Type": "application/json",
        "Content-Length": Buffer.byteLength(text),
        ...(token === null ? {} : { Authorization: token }),
      },
    };
    if (this.#terms.tls === null) return httpRequest(options);
    return httpsRequest({ ...options, ...this.#terms.tls });
  }

  /** Whoever found a member silent or without a leader sends everybody to the next one. */
  #leave(endpoint: Endpoint): void {
    if (this.#terms.endpoints.length === 1 || this.#endpoint !== endpoint) return;
    this.#at = (this.#at + 1) % this.#terms.endpoints.length;
    this.onMove();
  }

  /** Only after every member was asked: the next one may answer at once. */
  async #pause(tried: number, deadline: number): Promise<void> {
    const rounds = Math.floor((tried + 1) / this.#terms.endpoints.length);
    if (rounds === 0) return;
    const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (rounds - 1), LONGEST_PAUSE_MS);
    const leftMs = Math.max(0, deadline - systemClock.now());
    await sleep(systemClock, Math.min(pauseMs, leftMs), undefined);
  }

  get #name(): string {
    return this.#terms.endpoints.map(({ host, port }) => `${host}:${port}`).join(",");
  }
}

/** Null for what is no message of a watch, and for the one by which it fails. */
function readable(line: string): WatchMessage | null {
  try {
    return watchMessage(parsed(line));
  } catch (error) {
    if (isMalformed(error)) return null;
    throw error;
  }
}
