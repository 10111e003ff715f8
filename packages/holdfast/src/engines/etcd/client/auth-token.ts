import { systemClock } from "../../../core/runtime/clock.js";
import type { EngineError } from "../../../errors.js";
import type { EtcdTerms } from "../options.js";
import { noAnswer, withoutEffect } from "./failure.js";
import { lateError } from "./gateway-protocol.js";

/**
 * Authentication costs the server a bcrypt, so its time limit is not that of the call that needs it
 * first.
 */
const AUTHENTICATION_MS = 10_000;

type User = NonNullable<EtcdTerms["user"]>;

interface Current {
  readonly fetched: Promise<string>;
  /** Null until the server has answered. */
  token: string | null;
}

/**
 * The auth token of our user, shared by all calls. When a server has forgotten it, all calls under
 * way are refused at about the same time: one of them fetches a new token, and the others wait for
 * it.
 */
export class AuthToken {
  readonly #user: User | null;
  readonly #authenticate: (user: User, deadline: number) => Promise<string>;
  #current: Current | null = null;
  /** The last failure to fetch a token. */
  failure: EngineError | null = null;

  constructor(user: User | null, authenticate: (user: User, deadline: number) => Promise<string>) {
    this.#user = user;
    this.#authenticate = authenticate;
  }

  /** The current token; null without a user. */
  async get(deadline: number): Promise<string | null> {
    if (this.#user === null) return null;
    this.#current ??= this.#fetch(this.#user);
    const { fetched, token } = this.#current;
    return token ?? this.#inTime(fetched, deadline);
  }

  /**
   * A call was refused with this token. A late refusal of an old token does not discard the current
   * one.
   */
  refused(token: string | null): void {
    if (token !== null && this.#current?.token === token) this.#current = null;
  }

  #fetch(user: User): Current {
    const fetched = this.#authenticate(user, systemClock.now() + AUTHENTICATION_MS);
    const current: Current = { fetched, token: null };
    fetched.then(
      (token) => {
        current.token = token;
        this.failure = null;
      },
      () => {
        if (this.#current === current) this.#current = null;
      },
    );
    return current;
  }

  /** A call that waits too long for its token has sent nothing, so its failure has no effect. */
  #inTime(fetched: Promise<string>, deadline: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const giveUp = () =>
        reject(withoutEffect(this.failure ?? noAnswer("its authentication", lateError(), false)));
      const timer = systemClock.timer(Math.max(0, deadline - systemClock.now()), giveUp, true);
      const done = () => timer.cancel();
      fetched.then(resolve, (error: unknown) => reject(withoutEffect(error))).then(done);
    });
  }
}
