// A waiter is woken within this time of its turn, on a machine that is busy with other things too.
const SLACK_MS = 8_000;
// The backend counts from a moment before the holder learned of its grant.
const GRANT_TRAVEL_MS = 100;

/** What was measured. Everything the summary says is computed from this. */
export interface Facts {
  readonly processes: number;
  readonly increments: { readonly expected: number; readonly found: number };
  /** Every grant of the tour in the order of its instant. */
  readonly grants: readonly Grant[];
  readonly kill: KillFacts;
  /** Tokens compared at the write alone. */
  readonly unfenced: PauseFacts;
  /** Tokens registered before the read, and checked with the write. */
  readonly fenced: PauseFacts;
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
  /** From its grant, after which it could not renew, to that of the heir. */
  readonly afterGrantMs: number;
  readonly heldAfterwards: boolean;
  readonly assertHeldThrew: string;
  readonly staleSale: string;
  readonly heirSale: string;
  /** Of one unit in stock. */
  readonly sold: number;
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
  const { processes, increments, grants, kill, unfenced, fenced: pause } = facts;
  const overlaps = overlapsIn(grants);
  const rising = grants.every(({ token }, i) => i === 0 || token > grants[i - 1]!.token);
  // A holder whose lease still had time can only have been replaced because its death was certain.
  const provenDead = kill.takeoverMs < kill.ttlLeftMs;
  const why = provenDead ? "because the process was proven dead" : "when the lease ran out";
  return [
    {
      text:
        `${increments.found} of ${increments.expected} increments by ${processes} processes ` +
        "arrived in the file.",
      holds: increments.found === increments.expected,
    },
    {
      text: `${grants.length} grants, ${overlaps} overlaps: never two holders at once.`,
      holds: overlaps === 0,
    },
    {
      text:
        `Tokens ${grants[0]?.token} to ${grants.at(-1)?.token}: ` +
        "each grant's was greater than all before it.",
      holds: rising && grants.length > 0,
    },
    {
      text:
        `Killed: ${kill.victim}, with ${inSeconds(kill.ttlLeftMs)} of its lease left. ` +
        `${kill.heir} had the lock ${inMs(kill.takeoverMs)} later, ${why}.`,
      holds: kill.takeoverMs < kill.ttlLeftMs + SLACK_MS && kill.heirToken > kill.token,
    },
    {
      text:
        `Stopped: ${pause.sleeper}, which may yet wake up, so ${pause.heir} was made to wait until ` +
        `the ttl of ${pause.ttlMs} ms was over. It took ${Math.round(pause.afterGrantMs)} ms.`,
      holds:
        pause.afterGrantMs > pause.ttlMs - GRANT_TRAVEL_MS &&
        pause.afterGrantMs < pause.ttlMs + SLACK_MS,
    },
    {
      text:
        `Awake after ${inSeconds(pause.stoppedMs)}, ${pause.sleeper} saw held = ` +
        `${pause.heldAfterwards} in its first statement; assertHeld() threw ${pause.assertHeldThrew}.`,
      holds: !pause.heldAfterwards && pause.assertHeldThrew === "LeaseLostError",
    },
    {
      text:
        `Tokens compared at the write alone: the late sale with ${unfenced.token} was ` +
        `${unfenced.staleSale}, since ${unfenced.heir} had not written yet, and ${unfenced.sold} ` +
        "of 1 were sold.",
      holds:
        unfenced.staleSale === "accepted" &&
        unfenced.heirSale === "accepted" &&
        unfenced.sold === 2,
    },
    {
      text:
        `Tokens registered before the read: the late sale with ${pause.token} was ` +
        `${pause.staleSale}, since ${pause.heir} had registered ${pause.heirToken}, and ` +
        `${pause.sold} of 1 was sold.`,
      holds: pause.staleSale === "refused" && pause.heirSale === "accepted" && pause.sold === 1,
    },
    {
      text:
        `${pause.sleeper}'s late release() said "${pause.staleRelease}", and ` +
        `${pause.heir} kept the lock.`,
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
