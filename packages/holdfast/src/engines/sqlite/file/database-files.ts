import { type BigIntStats, readFileSync, realpathSync, statSync } from "node:fs";
import { EngineError } from "../../../errors.js";

// A check costs a tenth of a transaction, so not every transaction checks. A grant that is made in
// these few milliseconds after the file was removed is no worse than a grant made just before:
// neither can be renewed.
const CHECK_EVERY_MS = 5;

/**
 * The files that a connection has open. SQLite keeps using them after they were removed or renamed,
 * while a process that opens the path later gets another file. The system does not reuse the inode
 * of an open file, so device and inode show whether the path still leads to the file that we have
 * open.
 */
export class DatabaseFiles {
  /** Whether the last check passed. */
  verified = true;
  readonly #path: string;
  readonly #database: BigIntStats;
  #companions: readonly Companion[] | null = null;
  #nextCheckAt = -Infinity;

  private constructor(path: string, database: BigIntStats) {
    this.#path = path;
    this.#database = database;
  }

  /** Call this before opening the connection. Null if there is no file yet. */
  static at(path: string): DatabaseFiles | null {
    const database = statFile(path);
    return database === null ? null : new DatabaseFiles(path, database);
  }

  static mustBeAt(path: string): DatabaseFiles {
    const files = DatabaseFiles.at(path);
    if (files === null) throw fileReplaced(path);
    return files;
  }

  /** Whether the path still leads to the file to which it led before the connection was opened. */
  get areInPlace(): boolean {
    return isAt(this.#path, this.#database);
  }

  /**
   * Throws unless all files still have their names. Called inside a transaction. The next check
   * finds what is removed after this one.
   */
  verify(now: number): void {
    if (now < this.#nextCheckAt) return;
    this.verified = false;
    this.#nextCheckAt = -Infinity;
    if (!this.areInPlace) throw fileReplaced(this.#path);
    this.#companions ??= this.#findCompanions();
    const missing = this.#companions.find(({ path, stats }) => !isAt(path, stats));
    if (missing !== undefined) throw fileReplaced(this.#path, missing.path);
    this.verified = true;
    this.#nextCheckAt = now + CHECK_EVERY_MS;
  }

  /** SQLite opens -wal and -shm in the first transaction, so they cannot be checked earlier. */
  #findCompanions(): readonly Companion[] {
    return companionsOf(this.#path).map((path) => {
      const stats = statFile(path);
      if (stats === null) throw fileReplaced(this.#path, path);
      return { path, stats };
    });
  }
}

interface Companion {
  readonly path: string;
  readonly stats: BigIntStats;
}

/**
 * A file with two names has two sets of -wal and -shm beside it, so processes that use one name do
 * not see the locks of processes that use the other. A file that is mounted by itself has a second
 * name too.
 */
export function refuseSecondName(path: string): void {
  const stats = statFile(path);
  if (stats === null) return;
  if (stats.nlink > 1n) {
    throw refusal(
      `"${path}" has ${stats.nlink} names (hard links), and processes that use different names ` +
        `would not exclude each other. Keep one name: find / -xdev -samefile "${path}" lists them. ` +
        "If you need a second name, make it a symbolic link",
    );
  }
  if (isMountPoint(realpathSync(path))) {
    throw refusal(
      `"${path}" is mounted by itself, without the files that SQLite keeps beside it, so ` +
        "processes inside and outside the mount would not exclude each other. " +
        "Mount its folder instead",
    );
  }
}

/** SQLite would use the -wal or -shm of a removed file for the new file. */
export function refuseLeftovers(path: string): void {
  const leftovers = [`${path}-wal`, `${path}-shm`].filter((name) => statFile(name) !== null);
  if (leftovers.length === 0) return;
  const names = leftovers.map((name) => `"${name}"`).join(" and ");
  throw refusal(
    `"${path}" was removed or replaced while it was in use, and left ${names} behind. ` +
      `Stop all programs that use it, remove ${names}, then start them again`,
  );
}

/**
 * The one of -wal and -shm that is missing while the other exists. This is normal for a moment when
 * the first connection opens the file or the last one closes it. Otherwise somebody removed it, and
 * a new one would not be shared with the processes that have the old one open.
 */
export function missingCompanion(path: string): string | null {
  const missing = companionsOf(path).filter((name) => statFile(name) === null);
  return missing.length === 1 ? missing[0]! : null;
}

export function fileReplaced(path: string, missing = path, cause?: unknown): EngineError {
  return refusal(
    `"${missing}" was removed or replaced while "${path}" was in use. Processes that open it now do ` +
      "not see the locks of processes that had it open before, and those locks expire. Stop all " +
      "programs that use it, then start them again",
    cause,
  );
}

/** SQLite names -wal and -shm after the file itself, not after a symbolic link to it. */
function companionsOf(path: string): readonly string[] {
  const real = realpathSync(path);
  return [`${real}-wal`, `${real}-shm`];
}

function isAt(path: string, known: BigIntStats): boolean {
  const stats = statFile(path);
  // A removed file (nlink 0) can still be found at a path where it is mounted.
  return stats !== null && stats.ino === known.ino && stats.dev === known.dev && stats.nlink > 0n;
}

/**
 * stat opens nothing, so it drops no lock. Inodes need all 64 bits: overlay file systems use the
 * highest.
 */
function statFile(path: string): BigIntStats | null {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
  } catch (cause) {
    const message = `cannot read the status of "${path}": ${(cause as Error).message}`;
    throw new EngineError(message, { effect: "none", retryable: false, cause });
  }
}

function isMountPoint(path: string): boolean {
  let mounts: string;
  try {
    mounts = readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    // Not Linux: other systems do not mount single files.
    return false;
  }
  return mounts.split("\n").some((line) => unescaped(line.split(" ")[4] ?? "") === path);
}

/** mountinfo writes spaces and similar characters as three octal digits. */
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}

function refusal(message: string, cause?: unknown): EngineError {
  return new EngineError(message, { effect: "none", retryable: false, cause });
}
