import { execFileSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensure } from "../installing/install.js";

// Adds an offset to the wall clock and leaves the monotonic one alone, as a step by NTP or by hand
// does.
const SHIM = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile int64_t *offset_ms;
static int (*real_gettime)(clockid_t, struct timespec *);
__attribute__((constructor)) static void start(void) {
  const char *path = getenv("CLOCK_OFFSET_FILE");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return;
  void *page = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) offset_ms = page;
}
int clock_gettime(clockid_t id, struct timespec *t) {
  if (!real_gettime) real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real_gettime(id, t);
  if (result || !offset_ms || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return result;
  int64_t ns = t->tv_nsec + (*offset_ms % 1000) * 1000000;
  t->tv_sec += *offset_ms / 1000 + (ns >= 1000000000) - (ns < 0);
  t->tv_nsec = (ns + 1000000000) % 1000000000;
  return 0;
}
int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  tv->tv_sec = t.tv_sec;
  tv->tv_usec = t.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *out) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  if (out) *out = t.tv_sec;
  return t.tv_sec;
}
`;

/** A wall clock for one server that a test can set. The server must be started with its env. */
export class ShiftedClock implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "clock-"));
  readonly #file = join(this.#folder, "offset");

  constructor() {
    ensure("stdio.h");
    const gcc = ensure("gcc");
    const source = join(this.#folder, "shim.c");
    writeFileSync(source, SHIM);
    this.set(0);
    execFileSync(gcc, ["-shared", "-fPIC", "-O1", "-o", this.#library, source, "-ldl"]);
  }

  get env(): Readonly<Record<string, string>> {
    return { LD_PRELOAD: this.#library, CLOCK_OFFSET_FILE: this.#file };
  }

  /** Sets how far the server's clock is ahead from now on. */
  set(offsetMs: number): void {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(offsetMs));
    // Written in place, because the server has this file mapped.
    const file = openSync(this.#file, existsSync(this.#file) ? "r+" : "w");
    writeSync(file, bytes, 0, 8, 0);
    closeSync(file);
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #library(): string {
    return join(this.#folder, "shim.so");
  }
}
