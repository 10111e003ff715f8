import { readdirSync, readFileSync } from "node:fs";

/** A process. Its start time distinguishes it from a later process with the same pid. */
export interface KnownProcess {
  readonly pid: number;
  readonly startedAt: string;
}

interface Stat extends KnownProcess {
  readonly parent: number;
  readonly dead: boolean;
}

/** A process and its descendants. Needs /proc; without it the list is empty. */
export function family(pid: number): KnownProcess[] {
  const all = readAll();
  const members = new Map<number, KnownProcess>();
  const add = (stat: Stat) => {
    if (members.has(stat.pid)) return;
    members.set(stat.pid, stat);
    for (const other of all) if (other.parent === stat.pid) add(other);
  };
  const root = all.find((stat) => stat.pid === pid);
  if (root !== undefined) add(root);
  return [...members.values()];
}

/**
 * Every process that was started with this text in its environment, and its descendants. This also
 * finds orphans: their parents have ended, so family() cannot reach them.
 */
export function marked(mark: string): KnownProcess[] {
  return readAll()
    .filter(({ pid }) => environmentOf(pid).includes(mark))
    .flatMap(({ pid }) => family(pid));
}

export function isAlive({ pid, startedAt }: KnownProcess): boolean {
  const now = read(String(pid));
  return now !== null && now.startedAt === startedAt && !now.dead;
}

export function signalProcess(member: KnownProcess, signal: NodeJS.Signals): void {
  if (!isAlive(member)) return;
  try {
    process.kill(member.pid, signal);
  } catch {
    // The process ended before the signal, or now runs as a user whom we may not signal.
  }
}

function readAll(): Stat[] {
  try {
    const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
    return pids.flatMap((pid) => read(pid) ?? []);
  } catch {
    return [];
  }
}

/** Empty for a process of another user and for one that has ended. */
function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    return "";
  }
}

function read(pid: string): Stat | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name may contain spaces and parentheses. The fields after the last ")" do not.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent = ""] = fields;
    const dead = state === "Z" || state === "X";
    return { pid: Number(pid), parent: Number(parent), startedAt: fields[19] ?? "", dead };
  } catch {
    return null;
  }
}
