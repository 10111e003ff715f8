import { inspect } from "node:util";
import { withTokensAsText, writesAsJson } from "./core/runtime/json.js";
import { OWN_LABEL } from "./core/runtime/own-label.js";
import type { HolderView } from "./engine.js";

const BRAND = Symbol.for("holdfast.error");
// Characters that a terminal or a log would act upon: control characters, line breaks, changes of
// direction.
const UNSHOWN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

export type ErrorCode =
  | "USAGE"
  | "UNSUPPORTED"
  | "MISSING_PEER"
  | "CLOSED"
  | "ACQUIRE_TIMEOUT"
  | "LEASE_LOST"
  | "FENCED_OUT"
  | "ENGINE"
  | "CONTRACT";

export interface ErrorDetails {
  readonly resource?: string | undefined;
  readonly cause?: unknown;
}

/** The base class of every error here. `instanceof` works across copies of the library. */
export abstract class HoldfastError extends Error {
  /** Identifies this class across copies of the library. The name cannot: a minifier changes it. */
  static readonly brand: ErrorCode | "ANY" = "ANY";
  abstract readonly code: ErrorCode;
  readonly resource?: string;

  constructor(message: string, details: ErrorDetails = {}) {
    // The message may contain labels, names and backend texts, which other people write.
    const cause = details.cause === undefined ? undefined : { cause: details.cause };
    super(printable(message), cause);
    this.name = new.target.name;
    if (details.resource !== undefined) this.resource = details.resource;
  }

  /** Without the cause: it comes from a client library, and may contain anything. */
  toJSON(): Record<string, unknown> {
    const { name, message } = this;
    const { cause: _, ...own } = withTokensAsText.call(this) as { cause?: unknown };
    return { name, code: this.code, message, ...own };
  }

  get [BRAND](): ErrorCode {
    return this.code;
  }

  // Two copies of the library may live in one process (a dependency brought its own). A class that
  // a user derived has no brand, and is recognised by its prototype alone.
  static override [Symbol.hasInstance](value: unknown): boolean {
    if (Function.prototype[Symbol.hasInstance].call(this, value)) return true;
    if (typeof value !== "object" || value === null || !(BRAND in value)) return false;
    return Object.hasOwn(this, "brand") && (this.brand === "ANY" || this.brand === value[BRAND]);
  }
}

/** The caller's mistake. Nothing was acquired, released or changed. */
export class UsageError extends HoldfastError {
  static override readonly brand = "USAGE";
  readonly code = "USAGE";
}

/** The engine does not offer what was asked for. */
export class UnsupportedError extends HoldfastError {
  static override readonly brand = "UNSUPPORTED";
  readonly code = "UNSUPPORTED";
}

/** The client package of an engine is not installed. The message contains the install command. */
export class MissingPeerError extends HoldfastError {
  static override readonly brand = "MISSING_PEER";
  readonly code = "MISSING_PEER";
}

/** `close()` was called while this acquire waited. Nothing is held. */
export class ClosedError extends HoldfastError {
  static override readonly brand = "CLOSED";
  readonly code = "CLOSED";
}

/** waitMs is over: somebody else holds the resource, or is ahead of us in its queue. */
export class AcquireTimeoutError extends HoldfastError {
  static override readonly brand = "ACQUIRE_TIMEOUT";
  readonly code = "ACQUIRE_TIMEOUT";
  readonly waitedMs: number;
  readonly holders: readonly HolderView[];

  /** hint: appended to the message. */
  constructor(resource: string, waitedMs: number, holders: readonly HolderView[], hint = "") {
    const names = holders.map(({ label, token }) => {
      const whose = label === OWN_LABEL ? "this process, " : "";
      return `${whose}${label} (token ${token})`;
    });
    // Without a holder: waiters may be ahead, or a lock-delay, or a transaction that locks the row.
    const who = names.length === 0 ? "the backend named no holder" : `held by ${names.join(", ")}`;
    super(`"${resource}" was not granted within ${Math.round(waitedMs)} ms; ${who}${hint}`, {
      resource,
    });
    this.waitedMs = waitedMs;
    this.holders = holders.map((holder) => writesAsJson({ ...holder }));
  }
}

export type LossReason = "expired" | "replaced" | "revoked" | "unconfirmed" | "max-hold" | "closed";

const LOSS: Record<LossReason, string> = {
  expired: "it expired at the backend",
  replaced: "another holder was granted the resource",
  revoked: "it was revoked",
  unconfirmed: "no renewal was confirmed in time",
  "max-hold": "maxHoldMs was reached",
  closed: "its connection was closed",
};

/** The holder may no longer act. */
export class LeaseLostError extends HoldfastError {
  static override readonly brand = "LEASE_LOST";
  readonly code = "LEASE_LOST";
  readonly reason: LossReason;
  readonly token: bigint;
  /** Nobody else can hold the resource for this long: the time left to stop what is under way. */
  readonly remainingMs: number;

  constructor(resource: string, token: bigint, reason: LossReason, remainingMs: number) {
    super(`lease of "${resource}" (token ${token}) was lost: ${LOSS[reason]}`, { resource });
    this.reason = reason;
    this.token = token;
    this.remainingMs = remainingMs;
  }
}

/** Where the data lives, another token is registered: usually a newer holder is at work. */
export class FencedOutError extends HoldfastError {
  static override readonly brand = "FENCED_OUT";
  readonly code = "FENCED_OUT";
}

/**
 * Why a backend failed, where a person must act: start it, correct the user name or password, give
 * the user its rights, create the database, run `init`. Everything else is "other".
 */
export type FailureReason =
  | "unreachable"
  | "credentials"
  | "rights"
  | "no-database"
  | "not-prepared"
  | "other";

export interface EngineErrorDetails extends ErrorDetails {
  /** none: nothing changed for certain. unknown: the request may have been carried out. */
  readonly effect: "none" | "unknown";
  readonly retryable: boolean;
  /** Default: "other". */
  readonly reason?: FailureReason;
}

/** The backend could not be reached, or refused. */
export class EngineError extends HoldfastError {
  static override readonly brand = "ENGINE";
  readonly code = "ENGINE";
  readonly effect: "none" | "unknown";
  readonly retryable: boolean;
  readonly reason: FailureReason;

  constructor(message: string, details: EngineErrorDetails) {
    super(message, details);
    this.effect = details.effect;
    this.retryable = details.retryable;
    this.reason = details.reason ?? "other";
  }
}

/**
 * The same failure with effect unknown, because another request is unanswered and may have an
 * effect.
 */
export function inDoubt<E>(error: E): E | EngineError {
  if (!(error instanceof EngineError) || error.effect === "unknown") return error;
  const { message, retryable, reason, resource, cause } = error;
  return new EngineError(message, { effect: "unknown", retryable, reason, resource, cause });
}

/** An engine broke a law of the contract. Please report it: this is a defect. */
export class ContractError extends HoldfastError {
  static override readonly brand = "CONTRACT";
  readonly code = "CONTRACT";
}

/** All shared claims on a resource have one limit; engines refuse another one with this error. */
export function limitMismatch(
  resource: string,
  asked: number | null,
  inUse: number | null,
): UsageError {
  const say = (limit: number | null) => (limit === null ? "no limit" : `limit ${limit}`);
  return new UsageError(
    `"${resource}" is in use with ${say(inUse)}, and this claim asks for ${say(asked)}; ` +
      "all shared claims on one resource need the same limit",
    { resource },
  );
}

/** Text that is safe to show: characters that a terminal would act upon are escaped. */
export function printable(text: string): string {
  return text.replace(UNSHOWN, (one) =>
    one === "\n" ? "\\n" : `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Any value as text for a message, on one line. */
export function show(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  return inspect(value, { depth: 0, breakLength: Infinity });
}

const MOST_NAMES = 5;

/**
 * Describes what a value is without showing its content, which may be a secret: a URL or a client
 * contains a password.
 */
export function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return "a string";
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return show(value);
  if (Array.isArray(value)) return "a list";
  if (value instanceof Promise) return "a promise; await it";
  const maker = makerOf(value);
  if (maker !== "Object") return `an object of class ${maker}`;
  const names = Object.keys(value);
  if (names.length === 0) return "an empty object";
  const more = names.length > MOST_NAMES ? ", …" : "";
  return `an object with ${names.slice(0, MOST_NAMES).join(", ")}${more}`;
}

/** The nearest class with a meaningful name: the class of node-redis' clients is called Class. */
function makerOf(value: object): string {
  for (let at = Object.getPrototypeOf(value); at !== null; at = Object.getPrototypeOf(at)) {
    const name: unknown = at.constructor?.name;
    if (typeof name === "string" && name !== "" && name !== "Class") return name;
  }
  return "Object";
}

export function invariant(condition: boolean, why: string): asserts condition {
  if (!condition) throw new ContractError(`invariant broken: ${why}`);
}
