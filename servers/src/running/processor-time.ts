import { readdirSync, readFileSync } from "node:fs";

/**
 * The processor time that a process and all its descendants have used, in microseconds. Time on the
 * clock would count what else the machine does; this counts the work of one server alone. Without
 * PostgreSQL's autovacuum, which comes and goes by itself. Linux only.
 */
export function processorTimeUs(pid: number): number {
  if (/^postgres: autovacuum worker/.test(read(`/proc/${pid}/cmdline`))) return 0;
  let sum = 0;
  for (const thread of threadsOf(pid)) {
    const folder = `/proc/${pid}/task/${thread}`;
    // Nanoseconds on a processor, nanoseconds of waiting for one, and how often.
    const [ranNs] = read(`${folder}/schedstat`).split(" ");
    sum += Number(ranNs) / 1_000;
    const children = read(`${folder}/children`)
      .split(" ")
      .filter((child) => Number(child) > 0);
    for (const child of children) sum += processorTimeUs(Number(child));
  }
  return sum;
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

/** Threads and children come and go while we look. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (isGone(error)) return "0";
    throw error;
  }
}

function isGone(error: unknown): boolean {
  return ["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "");
}
