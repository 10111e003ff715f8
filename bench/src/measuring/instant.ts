const SAMPLES = 50;

// performance.now() counts from the start of the process, hrtime from the start of the host. Each
// sample is too small by the time between its two reads, so the largest sample is the best.
const STARTED_AT = Math.max(...Array.from({ length: SAMPLES }, sinceBoot));

/** Milliseconds on a clock that all processes of the host share, as cheap as performance.now(). */
export function instant(): number {
  return STARTED_AT + performance.now();
}

/** The CPU time that this process has used so far, on all cores. */
export function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e3;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}

/** Rejects when the work takes longer than it may: no part of a bench waits for ever. */
export async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function sinceBoot(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6 - performance.now();
}
