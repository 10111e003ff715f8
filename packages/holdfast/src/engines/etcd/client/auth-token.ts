import { systemClock } from "../../../core/runtime/clock.js";
import type { EngineError } from "../../../errors.js";
import type { EtcdTerms } from "../options.js";
import { silence, withoutEffect } from "./failure.js";
import { late } from "./gateway-protocol.js";

/** Each authentication costs the server a bcrypt, so its time is not that of the call which needs it first. */
const AUTHENTICATION_MS = 10_000;

type User = NonNullable<EtcdTerms["user"]>;

interface Current {
  readonly fetched: Promise<string>;
  /** Null until it has come. */
  token: string | null;
}

/**
 * The token of our user, one for all calls. When a server has forgotten it, all calls under way are
 * refused at about the same time: one of them fetches another token, and the others wait for that one.
 */
export class AuthToken {
  readonly #user: User | null;
  readonly #authenticate: (user: User, deadline: number) => Promise<string>;
  #current: Current | null = null;
  /** What last kept a token from being fetched. */
  failure: EngineError | null = null;

  constructor(user: User | null, authenticate: (user: User, deadline: number) => Promise<string>) {
    this.#user = user;
    this.#authenticate = authenticate;
  }

  /** Null without a user. */
  async get(deadline: number): Promise<string | null> {
    if (this.#user === null) return null;
    this.#current ??= this.#fetch(this.#user);
    const { fetched, token } = this.#current;
    return token ?? this.#inTime(fetched, deadline);
  }

  /** A call was refused with this token. Whoever comes later than the next one does not end that. */
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

  /** Nothing was sent by whoever waits in vain. */
  #inTime(fetched: Promise<string>, deadline: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const giveUp = () =>
        reject(withoutEffect(this.failure ?? silence("its authentication", late(), false)));
      const timer = systemClock.timer(Math.max(0, deadline - systemClock.now()), giveUp, true);
      const done = () => timer.cancel();
      fetched.then(resolve, (error: unknown) => reject(withoutEffect(error))).then(done);
    });
  }
}
