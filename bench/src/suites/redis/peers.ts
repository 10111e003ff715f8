import type { Contender } from "../../measuring/suite.js";
import { ioredisLock, ioredisLockEvery10 } from "./ioredis-lock.js";
import { semaphore, semaphoreEvery1 } from "./redis-semaphore.js";
import { redlock, redlockEvery10, sesameRedlock } from "./redlock.js";
import { simpleMutex } from "./simple-redis-mutex.js";
import { verrou, verrouEvery10 } from "./verrou.js";

/**
 * What people use. Where a library looks again and again, with the pauses of its defaults and,
 * where waiting matters, with shorter ones. All are told to be patient, as far as they can be told.
 */
export const peers: readonly Contender[] = [
  ...[redlock, redlockEvery10, sesameRedlock, semaphore, semaphoreEvery1],
  ...[verrou, verrouEvery10, simpleMutex, ioredisLock, ioredisLockEvery10],
];
