import { execFileSync } from "node:child_process";
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ensure } from "../installing/install.js";

const POLL_MS = 5;
const OPEN = 1n << 62n;
const PATIENCE_MS = 60_000;

// Every write to the file waits for a pass. Two numbers are shared with the test: the passes that
// are left and the writes that wait. A waiting write is in no file yet, so a kill loses it like a
// power cut.
const SHIM = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
static _Atomic int64_t *passes, *waiting;
static const char *name;
__attribute__((constructor)) static void start(void) {
  const char *path = getenv("LOG_GATE_FILE");
  // A server may write its title over its environment.
  name = getenv("LOG_GATE_NAME") ? strdup(getenv("LOG_GATE_NAME")) : 0;
  int fd = path ? open(path, O_RDWR) : -1;
  if (fd < 0) return;
  void *page = mmap(0, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return;
  passes = page;
  waiting = passes + 1;
}
static int guarded(int fd) {
  char link[64], target[4096];
  if (!passes || !name) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, target, sizeof target - 1);
  if (length < 0) return 0;
  target[length] = 0;
  return strstr(target, name) != 0;
}
static void pass(void) {
  int64_t left = *passes;
  ++*waiting;
  // A process that outlives its server and its test must not wait for ever.
  for (int tries = 0; tries < ${PATIENCE_MS * 2}; tries++) {
    if (left > 0 && __atomic_compare_exchange_n((int64_t *)passes, &left, left - 1, 0, 5, 5)) break;
    usleep(500);
    left = *passes;
  }
  --*waiting;
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  static ssize_t (*real)(int, const void *, size_t, off64_t);
  if (!real) real = dlsym(RTLD_NEXT, "pwrite64");
  if (guarded(fd)) pass();
  return real(fd, bytes, count, offset);
}
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  return pwrite64(fd, bytes, count, offset);
}
`;

/** Holds back a server's writes to its log, so that a test decides what is on the disk. */
export class LogGate implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "gate-"));
  readonly #file = join(this.#folder, "gate");
  readonly #name: string;

  /** name: a part of the log's path. */
  constructor(name: string) {
    this.#name = name;
    ensure("stdio.h");
    const gcc = ensure("gcc");
    const source = join(this.#folder, "shim.c");
    writeFileSync(source, SHIM);
    writeFileSync(this.#file, Buffer.alloc(16));
    this.open();
    // A server that runs as another user must be able to enter the folder and write the counters.
    chmodSync(this.#folder, 0o711);
    chmodSync(this.#file, 0o666);
    execFileSync(gcc, ["-shared", "-fPIC", "-O1", "-o", this.#library, source, "-ldl"]);
  }

  /** The environment variables with which the server must be started. */
  get env(): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: this.#library,
      LOG_GATE_FILE: this.#file,
      LOG_GATE_NAME: this.#name,
    };
  }

  open(): void {
    this.#pass(OPEN);
  }

  close(): void {
    this.#pass(0n);
  }

  /** Lets one write through the closed gate. */
  letOneThrough(): void {
    this.#pass(1n);
  }

  /** Waits until this many writes wait at the gate. */
  async untilWaiting(count: number, withinMs = 10_000): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (this.#waiting() < count) {
      if (performance.now() > deadline) throw new Error(`${this.#waiting()} writes wait`);
      await sleep(POLL_MS);
    }
  }

  [Symbol.dispose](): void {
    this.open();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #pass(passes: bigint): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(passes);
    // Written in place, because the server has this file mapped.
    const file = openSync(this.#file, "r+");
    writeSync(file, bytes, 0, 8, 0);
    closeSync(file);
  }

  #waiting(): number {
    const bytes = Buffer.alloc(8);
    const file = openSync(this.#file, "r");
    readSync(file, bytes, 0, 8, 8);
    closeSync(file);
    return Number(bytes.readBigInt64LE());
  }

  get #library(): string {
    return join(this.#folder, "shim.so");
  }
}
