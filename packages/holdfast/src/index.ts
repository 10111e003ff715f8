export { connect } from "./connect.js";
export {
  EXPONENTIAL_DEFAULTS,
  type ExponentialOptions,
  exponential,
  type FixedOptions,
  fixed,
  type RetryStrategy,
} from "./core/acquiring/retry.js";
export type { Lease, RenewOptions } from "./core/holding/lease.js";
export type { RunFunction } from "./core/holding/run.js";
export type { Clock, Timer } from "./core/runtime/clock.js";
export { systemClock } from "./core/runtime/clock.js";
export type * from "./engine.js";
export {
  AcquireTimeoutError,
  ClosedError,
  ContractError,
  EngineError,
  type EngineErrorDetails,
  type ErrorCode,
  type ErrorDetails,
  type FailureReason,
  FencedOutError,
  HoldfastError,
  LeaseLostError,
  type LossReason,
  limitMismatch,
  MissingPeerError,
  UnsupportedError,
  UsageError,
} from "./errors.js";
export { channels, type EventName, type Events } from "./events.js";
export { formatSequencer, parseSequencer } from "./fencing/sequencer.js";
export { type InitOptions, init } from "./init.js";
export { type ListOptions, Locks, type RevokeOptions } from "./locks.js";
export {
  ACQUIRE_DEFAULTS,
  type AcquireOptions,
  CONNECT_DEFAULTS,
  type CohortBudget,
  type ConnectOptions,
  type TryAcquireOptions,
} from "./options.js";
export type { OnceOptions, OnceResult } from "./recipes/once.js";
export type { RecipeDefaults, RecipeOptions, RecipeTryOptions } from "./recipes/options.js";
export type { RwLock } from "./recipes/rw-lock.js";
export type { Semaphore, SemaphoreOptions } from "./recipes/semaphore.js";
