/** What was measured. Everything the summary says is computed from this. */
export interface Facts {
  readonly processes: number;
  readonly increments: { readonly expected: number; readonly found: number };
  /** Every grant of the tour in the order of its instant. */
  readonly grants: readonly Grant[];
  readonly kill: KillFacts;
  readonly pause: PauseFacts;
}

export interface Grant {
  readonly holder: string;
  readonly token: bigint;
  readonly from: number;
  /** When its holder began to give it back, was killed, or was stopped. */
  readonly until: number;
}

export interface KillFacts {
  readonly victim: string;
  readonly token: bigint;
  readonly heir: string;
  readonly heirToken: bigint;
  /** From SIGKILL to the next grant. */
  readonly takeoverMs: number;
  /** What the victim's lease had left when it was killed. */
  readonly ttlLeftMs: number;
}

export interface PauseFacts {
  readonly sleeper: string;
  readonly token: bigint;
  readonly ttlMs: number;
  readonly stoppedMs: number;
  readonly heir: string;
  readonly heirToken: bigint;
  /** From SIGSTOP to the next grant. */
  readonly takeoverMs: number;
  readonly heldAfterwards: boolean;
  readonly assertHeldThrew: string;
  readonly heirWrite: string;
  readonly staleWrite: string;
  readonly staleRelease: string;
  readonly heirHeldAfterwards: boolean;
  readonly heirKnownToEngine: boolean;
}

export interface Claim {
  readonly text: string;
  readonly holds: boolean;
}

/** What the tour claims to have shown, each with whether it did. */
export function judge(facts: Facts): Claim[] {
  const { processes, increments, grants, kill, pause } = facts;
  const overlaps = overlapsIn(grants);
  const rising = grants.every(({ token }, i) => i === 0 || token > grants[i - 1]!.token);
  const provenDead = kill.takeoverMs < kill.ttlLeftMs;
  const why = provenDead
    ? `its process was proven dead, so nobody waited out the ${inSeconds(kill.ttlLeftMs)} it had left`
    : "its lease ran out";
  return [
    {
      text: `${increments.found} of ${increments.expected} increments by ${processes} processes arrived; none was lost`,
      holds: increments.found === increments.expected,
    },
    {
      text: `${grants.length} grants, ${overlaps} overlaps: never two holders at once`,
      holds: overlaps === 0,
    },
    {
      text: `every token was greater than all before it, from ${grants[0]?.token} to ${grants.at(-1)?.token}`,
      holds: rising && grants.length > 0,
    },
    {
      text: `SIGKILL of ${kill.victim}: ${kill.heir} had the lock ${inMs(kill.takeoverMs)} later; ${why}`,
      holds: kill.takeoverMs < kill.ttlLeftMs + 1_000 && kill.heirToken > kill.token,
    },
    {
      text: `SIGSTOP of ${pause.sleeper} (ttl ${inSeconds(pause.ttlMs)}): ${pause.heir} had the lock after ${inSeconds(pause.takeoverMs)}, not before the lease was over`,
      holds: pause.takeoverMs > pause.ttlMs / 2 && pause.takeoverMs < pause.ttlMs + 1_000,
    },
    {
      text: `back after ${inSeconds(pause.stoppedMs)}, its first statement saw held = ${pause.heldAfterwards}; assertHeld() threw ${pause.assertHeldThrew}`,
      holds: !pause.heldAfterwards && pause.assertHeldThrew === "LeaseLostError",
    },
    {
      text: `its late write with token ${pause.token} was ${pause.staleWrite}; ${pause.heir} had written with ${pause.heirToken}`,
      holds: pause.heirWrite === "accepted" && pause.staleWrite.startsWith("refused"),
    },
    {
      text: `its late release() answered "${pause.staleRelease}", and ${pause.heir} kept the lock`,
      holds: pause.staleRelease === "gone" && pause.heirHeldAfterwards && pause.heirKnownToEngine,
    },
  ];
}

export function overlapsIn(grants: readonly Grant[]): number {
  let overlaps = 0;
  for (const [i, a] of grants.entries()) {
    for (const b of grants.slice(i + 1)) if (a.from < b.until && b.from < a.until) overlaps++;
  }
  return overlaps;
}

export function inMs(ms: number): string {
  return ms < 1_000 ? `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` : inSeconds(ms);
}

export function inSeconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
