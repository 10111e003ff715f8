import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { type EtcdCluster, startEtcdCluster } from "@holdfast/servers";
import { startChild } from "./ground.fixture.js";
import { Register, type Write } from "./register.fixture.js";

export interface TortureTerms {
  readonly forMs: number;
  readonly ttlMs: number;
  /** How often the leader is killed; it comes back a second later. */
  readonly killEveryMs: number;
  /** How long one process is stopped between two kills; longer than ttlMs. */
  readonly stopMs: number;
}

interface Held {
  readonly token: bigint;
  readonly from: number;
  readonly to: number;
}

interface Report {
  readonly kills: number;
  readonly stops: number;
  readonly did: number;
  readonly refused: number;
  readonly failed: Record<string, number>;
  readonly held: readonly Held[];
  readonly writes: readonly Write[];
}

const PROCESSES = 4;

type Child = ReturnType<typeof startChild>;

/** Processes that count in one register under one lock, while the leader is killed and they are stopped. */
export async function torture(terms: TortureTerms): Promise<Report> {
  await using cluster = await startEtcdCluster();
  await using register = await Register.start();
  const args = [cluster.url, String(register.port), String(terms.ttlMs)];
  const children = Array.from({ length: PROCESSES }, () => startChild("increments", args));
  let onHeld: (child: Child) => void = () => {};
  const said = Promise.all(children.map((child) => hear(child, () => onHeld(child))));
  // Whoever has the lock next, or anybody if nobody gets it.
  const holder = () =>
    Promise.race([
      new Promise<Child>((held) => {
        onHeld = held;
      }),
      sleep(500, children[0]!),
    ]);
  try {
    const counts = await disturb(cluster, holder, terms);
    for (const child of children) child.say("enough");
    const ends = children.map(({ process: child }) => child.exitCode ?? once(child, "exit"));
    await Promise.race([Promise.all(ends), sleep(15_000, null, { ref: false })]);
    await Promise.all(children.map((child) => child.kill()));
    const lines = (await said).flat();
    const failed: Record<string, number> = {};
    for (const line of lines) {
      if (!/^(in|did|held)\b/.test(line)) failed[line] = (failed[line] ?? 0) + 1;
    }
    const held = lines.filter((line) => line.startsWith("held")).map(readHeld);
    const did = lines.filter((line) => line === "did").length;
    return { ...counts, did, failed, held, refused: register.refused, writes: register.writes };
  } finally {
    await Promise.all(children.map((child) => child.kill()));
  }
}

/** What must be true of every torture, however long it was. */
export function judge(report: Report, longestGapMs: number): void {
  const { held, writes, did } = report;
  const { held: _, writes: __, ...counts } = report;
  console.log(JSON.stringify({ ...counts, held: held.length, writes: writes.length }));
  const inOrder = [...held].sort((a, b) => (a.token < b.token ? -1 : 1));
  for (const [i, { token, from }] of inOrder.entries()) {
    const before = inOrder[i - 1];
    if (before === undefined) continue;
    assert.notEqual(token, before.token, "a token was given twice");
    // One that was lost on arrival held at no instant, and has none to compare.
    const overlap = Number.isNaN(before.to) ? 0 : before.to - from;
    assert.ok(overlap <= 0, `${before.token} was held ${overlap} ms into ${token}`);
    const gapMs = from - before.from;
    assert.ok(gapMs <= longestGapMs, `nobody was granted anything for ${gapMs} ms`);
  }
  for (const [i, { token, value }] of writes.entries()) {
    const before = writes[i - 1] ?? { token: 0n, value: 0 };
    assert.ok(token > before.token, `token ${token} was accepted after ${before.token}`);
    assert.equal(value, before.value + 1, `token ${token} overwrote what it had not seen`);
  }
  assert.ok(did <= writes.length && did > 0);
  assert.ok(report.kills > 0 && report.stops > 0, "nothing was tried");
}

async function disturb(
  cluster: EtcdCluster,
  holder: () => Promise<Child>,
  { forMs, killEveryMs, stopMs }: TortureTerms,
) {
  let [kills, stops] = [0, 0];
  const until = performance.now() + forMs;
  while (performance.now() < until) {
    const nextAt = performance.now() + killEveryMs;
    const leader = await cluster.leader();
    const { process: child } = await holder();
    child.kill("SIGSTOP");
    stops++;
    await leader.kill();
    kills++;
    await sleep(1_000);
    await leader.start();
    await sleep(Math.max(0, stopMs - 1_000));
    child.kill("SIGCONT");
    await sleep(Math.max(0, nextAt - performance.now()));
  }
  return { kills, stops };
}

async function hear({ lines }: Child, onHeld: () => void): Promise<string[]> {
  const said: string[] = [];
  for (;;) {
    const next = await lines.next();
    if (next.done) return said;
    if (next.value === "in") onHeld();
    said.push(next.value);
  }
}

function readHeld(line: string): Held {
  const [, token = "", from = "", to = ""] = line.split(" ");
  return { token: BigInt(token), from: Number(from), to: Number(to) };
}
