import { readdirSync, readFileSync } from "node:fs";

/** A process, told from a later one with the same number by its start. */
export interface Member {
  readonly pid: number;
  readonly startedAt: string;
}

interface Stat extends Member {
  readonly parent: number;
  readonly dead: boolean;
}

/** A process and everything it started that is still its offspring. Needs /proc: else only itself. */
export function family(pid: number): Member[] {
  const all = readAll();
  const members = new Map<number, Member>();
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
 * Everybody with this text in the environment that it was started with, and their offspring. So those
 * are found whose parents have ended, which belong to no family any more.
 */
export function marked(mark: string): Member[] {
  return readAll()
    .filter(({ pid }) => environmentOf(pid).includes(mark))
    .flatMap(({ pid }) => family(pid));
}

export function isAlive({ pid, startedAt }: Member): boolean {
  const now = read(String(pid));
  return now !== null && now.startedAt === startedAt && !now.dead;
}

export function signalMember(member: Member, signal: NodeJS.Signals): void {
  if (!isAlive(member)) return;
  try {
    process.kill(member.pid, signal);
  } catch {
    // It ended between the look and the signal, or became another user's, whom we cannot stop.
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

/** Empty for processes of other users, and for those that have ended. */
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
    // The name may contain spaces and parentheses; the fields after its last one do not.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent = ""] = fields;
    const dead = state === "Z" || state === "X";
    return { pid: Number(pid), parent: Number(parent), startedAt: fields[19] ?? "", dead };
  } catch {
    return null;
  }
}
