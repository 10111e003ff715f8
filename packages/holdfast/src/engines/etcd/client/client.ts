import { Agent, type ClientRequest, request as httpRequest } from "node:http";
import { request as httpsRequest, Agent as TlsAgent } from "node:https";
import type { Socket } from "node:net";
import { sleep, systemClock } from "../../../core/runtime/clock.js";
import { EngineError } from "../../../errors.js";
import type { Endpoint, EtcdTerms } from "../options.js";
import { AuthToken } from "./auth-token.js";
import { isMalformed, isOutOfSpace, isStaleToken, noAnswer } from "./failure.js";
import { answerTo, isLate, lateError, lines, parsed, valueIn } from "./gateway-protocol.js";
import type { RawTxn, Txn } from "./requests.js";
import { type Check, tokenAnswer, txnAnswer, type WatchMessage, watchMessage } from "./shapes.js";

const MOST_SOCKETS = 64;
const MOST_TRIES = 32;
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 400;
// A member may be silent for one part in this many of a call's time; then the next member is asked.
const SHARE_OF_TIME = 3;
const SHORTEST_TRY_MS = 150;
const STREAM_MS = 2_000;
const AUTHENTICATE = "/v3/auth/authenticate";
// All calls wait for one authentication. Its first try is short, because a connection may be dead.
const AUTHENTICATION = { repeatable: true, urgent: true, firstTryMs: 1_000 } as const;

export interface CallOptions {
  /** On the engine's clock. */
  readonly deadline: number;
  /** Whether a second copy of the request is harmless and has the same answer. */
  readonly repeatable: boolean;
  /** For keepalives, which must not wait behind many claims. */
  readonly urgent?: boolean;
  /** The time limit of the first try. Each further try has twice the time. */
  readonly firstTryMs?: number;
}

export interface Stream {
  close(): void;
}

/** Called for every majority answer, with the leader's term and the time of the request. */
export type OnAnswer = (term: string, askedAt: number) => void;

/** A client of etcd's JSON gateway. Uses one member at a time, over keep-alive connections. */
export class EtcdClient {
  readonly #terms: EtcdTerms;
  readonly #agents: { readonly usual: Agent; readonly urgent: Agent; readonly streams: Agent };
  readonly #streams = new Set<ClientRequest>();
  #at = 0;
  readonly #authToken: AuthToken;
  #closed = false;
  /** Called when the client moves to another member. */
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
   * Reads and writes keys; a majority confirms each answer. Reads are transactions too: a plain
   * range without keys has an empty answer, while a transaction has one answer for each operation.
   */
  async txn(txn: Txn, options: CallOptions): Promise<RawTxn> {
    const [answer, askedAt] = await this.#call("/v3/kv/txn", txn, txnAnswer(txn), options);
    this.onAnswer(answer.header.raft_term ?? "0", askedAt);
    return answer;
  }

  async call<T>(path: string, body: object, check: Check<T>, options: CallOptions): Promise<T> {
    return (await this.#call(path, body, check, options))[0];
  }

  /**
   * Streams the messages of a watch until it ends or is closed. Does not keep the process alive.
   */
  stream(body: string, onMessage: (message: WatchMessage) => void, onEnd: () => void): Stream {
    let open = true;
    let request: ClientRequest | null = null;
    let moveOn = () => {};
    const end = () => {
      if (request !== null) this.#streams.delete(request);
      if (open) {
        // There may be no call for a long time that would notice the silent member.
        if (!this.#closed) moveOn();
        onEnd();
      }
      open = false;
    };
    const onLine = (line: string) => {
      const message = readable(line);
      if (message === null) request?.destroy();
      else onMessage(message);
    };
    const start = (token: string | null) => {
      if (!open || this.#closed) return;
      const endpoint = this.#endpoint;
      moveOn = () => this.#moveFrom(endpoint);
      request = this.#request("/v3/watch", body, token, endpoint, this.#agents.streams);
      // With this header a member that is cut off from the others ends its watches instead of being
      // silent.
      request.setHeader("Grpc-Metadata-hasleader", "true");
      this.#streams.add(request);
      request.on("socket", (socket: Socket) => socket.unref());
      request.on("error", end).on("close", end);
      // A member that hangs still accepts connections.
      const timer = systemClock.timer(STREAM_MS, () => request?.destroy(), false);
      request.on("close", () => timer.cancel());
      request.on("response", (response) => {
        timer.cancel();
        // One reason is a stale token, which the next call notices.
        if (response.statusCode !== 200) request?.destroy();
        else lines(response, (line) => open && onLine(line));
      });
      request.end(body);
    };
    // Without a token there is no watch; the stream ends and is opened again later.
    this.#authToken.get(systemClock.now() + STREAM_MS).then(start, end);
    return {
      close: () => {
        open = false;
        request?.destroy();
      },
    };
  }

  /** Calls under way fail at once and are not repeated. */
  close(): void {
    this.#closed = true;
    for (const stream of this.#streams) stream.destroy();
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  get #endpoint(): Endpoint {
    return this.#terms.endpoints[this.#at]!;
  }

  /**
   * Asks member after member until one answers or the time is over. A request that may have taken
   * effect is repeated only if that is harmless; if the repeat fails too, the effect stays unknown.
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
        // An earlier failure says more than a timeout, unless it was a stale token, which was
        // replaced.
        const before: EngineError | null = isStaleToken(failure) ? null : failure;
        failure = isLate(error) ? (before ?? error) : error;
        if (!usesToken) this.#authToken.failure = error;
      }
      if (isStale) {
        this.#authToken.refused(token);
        continue;
      }
      if (!failure.retryable || this.#closed) break;
      this.#moveFrom(endpoint);
      // A malformed answer would come again, so it is not asked for again.
      if ((doubtful && !options.repeatable) || isMalformed(failure)) break;
      // The quota belongs to the whole cluster, so asking each member once is enough.
      if (isOutOfSpace(failure) && tried + 1 >= this.#terms.endpoints.length) break;
      await this.#pause(tried, options.deadline);
    }
    const { message, retryable, reason, cause } =
      failure ?? noAnswer(this.#name, lateError(), false);
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

  /** One call that finds a member silent or without a leader moves all calls to the next member. */
  #moveFrom(endpoint: Endpoint): void {
    if (this.#terms.endpoints.length === 1 || this.#endpoint !== endpoint) return;
    this.#at = (this.#at + 1) % this.#terms.endpoints.length;
    this.onMove();
  }

  /** Pauses only after every member was asked: the next member may answer at once. */
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

/** Null for a line that is not a watch message, and for the message of a failing watch. */
function readable(line: string): WatchMessage | null {
  try {
    return watchMessage(parsed(line));
  } catch (error) {
    if (isMalformed(error)) return null;
    throw error;
  }
}
