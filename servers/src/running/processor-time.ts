import { readdirSync, readFileSync } from "node:fs";

/**
 * The processor time that a process and all its descendants have used, in microseconds. Time on the
 * clock would count what else the machine does; this counts the work of one server alone. Linux
 * only.
 */
export function processorTimeUs(pid: number): number {
  let sum = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const folder = `/proc/${pid}/task/${thread}`;
    // Nanoseconds on a processor, nanoseconds of waiting for one, and how often.
    const [ranNs] = read(`${folder}/schedstat`).split(" ");
    sum += Number(ranNs) / 1_000;
    const children = read(`${folder}/children`).split(" ").filter(Boolean);
    for (const child of children) sum += processorTimeUs(Number(child));
  }
  return sum;
}

/** Threads and children come and go while we look. */
function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code ?? "")) return "0";
    throw error;
  }
}
