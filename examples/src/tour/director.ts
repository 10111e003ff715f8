import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Locks } from "holdfast";
import { Actor } from "./actor.js";
import { type Facts, type Grant, inMs, inSeconds, type KillFacts, type PauseFacts } from "./facts.js";
import { instant, type Report } from "./messages.js";
import { Register } from "./register.js";
import type { Screen } from "./screen.js";

export const NAMES = ["ada", "ben", "cleo", "dan"] as const;
type Name = (typeof NAMES)[number];

const RESOURCE = "counter";
const ROUNDS = 4;
const HOLD_MS = 60;
const LONG_TTL_MS = 10_000;
const SHORT_TTL_MS = 2_000;
// Long enough for a reader to see what just happened.
const BEAT_MS = 600;

/** Lets four processes contend, kills one, stops one, and measures. */
export class Director implements AsyncDisposable {
  readonly #screen: Screen;
  readonly #folder: string;
  readonly #register = new Register();
  readonly #grants: { holder: string; token: bigint; from: number; until: number }[] = [];
  readonly actors: readonly Actor[];
  #locks: Locks | null = null;

  constructor(folder: string, screen: Screen) {
    this.#folder = folder;
    this.#screen = screen;
    const args = [this.#url, RESOURCE];
    this.actors = NAMES.map((name) => new Actor(name, args, (actor, r) => this.#hear(actor, r)));
  }

  async play(): Promise<Facts> {
    this.#locks = await connect(this.#url);
    await Promise.all(this.actors.map((actor) => actor.next("ready")));
    const increments = await this.#contend();
    const kill = await this.#kill();
    const pause = await this.#pause();
    const grants: Grant[] = [...this.#grants].sort((a, b) => a.from - b.from);
    return { processes: NAMES.length, increments, grants, kill, pause };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.actors.map((actor) => actor.dismiss()));
    await this.#locks?.close();
  }

  async #contend(): Promise<Facts["increments"]> {
    this.#screen.title(
      "1  Four processes, one lock",
      `Each adds one to a number in a file, ${ROUNDS} times, holding the lock. A lane shows its token while it holds; a dot waits.`,
    );
    const file = join(this.#folder, "number");
    await writeFile(file, "0");
    for (const actor of this.actors) {
      actor.order({ do: "count", rounds: ROUNDS, holdMs: HOLD_MS, file });
    }
    const expected = ROUNDS * this.actors.length;
    for (const actor of this.actors) {
      for (let round = 0; round < ROUNDS; round++) await actor.next("released");
    }
    return { expected, found: Number(await readFile(file, "utf8")) };
  }

  async #kill(): Promise<KillFacts> {
    const [ada, ben, cleo, dan] = this.#cast();
    this.#screen.title("2  A holder is killed", "ben takes the lock and is killed with SIGKILL: no clean-up, no goodbye.");
    ben.order({ do: "hold", ttlMs: LONG_TTL_MS });
    const { token } = await ben.next("granted");
    this.#screen.row(`ben holds, with ${inSeconds(LONG_TTL_MS)} to live unless renewed`);
    const line = [ada, cleo, dan];
    for (const actor of line) {
      actor.order({ do: "take", ttlMs: LONG_TTL_MS });
      await actor.next("asking");
      await sleep(50);
    }
    this.#screen.row("ada, cleo and dan stand in line");
    await sleep(BEAT_MS);
    const view = await this.#locks!.inspect(RESOURCE);
    const ttlLeftMs = view.holders[0]?.remainingMs ?? 0;
    const killedAt = instant();
    ben.signal("SIGKILL");
    this.#endGrant("ben", killedAt);
    this.#screen.mark("ben", "dead");
    this.#screen.row(`kill -9 ${ben.pid}; its lease had ${inSeconds(ttlLeftMs)} left`);
    const heir = await ada.next("granted");
    const takeoverMs = heir.at - killedAt;
    this.#screen.row(`ada has it ${inMs(takeoverMs)} after the kill`);
    for (const [i, actor] of line.entries()) {
      if (i > 0) await actor.next("granted");
      if (i > 0) this.#screen.row(`${actor.name} is next in line`);
      await actor.next("written");
      await sleep(BEAT_MS / 4);
      actor.order({ do: "give-back" });
      await actor.next("released");
    }
    const tokens = { token: BigInt(token), heirToken: BigInt(heir.token) };
    return { victim: "ben", heir: "ada", ...tokens, takeoverMs, ttlLeftMs };
  }

  async #pause(): Promise<PauseFacts> {
    const [, , cleo, dan] = this.#cast();
    this.#screen.title("3  A holder is stopped, and comes back too late", `cleo takes the lock for ${inSeconds(SHORT_TTL_MS)} and is stopped with SIGSTOP: alive, but it cannot renew.`);
    cleo.order({ do: "freeze", ttlMs: SHORT_TTL_MS });
    const mine = await cleo.next("granted");
    dan.order({ do: "take", ttlMs: LONG_TTL_MS });
    await dan.next("asking");
    this.#screen.row("cleo holds, dan stands in line");
    await sleep(BEAT_MS / 2);
    const stoppedAt = instant();
    cleo.signal("SIGSTOP");
    this.#endGrant("cleo", stoppedAt);
    this.#screen.mark("cleo", "stopped");
    this.#screen.row(`kill -STOP ${cleo.pid}`);
    const heir = await dan.next("granted");
    const takeoverMs = heir.at - stoppedAt;
    this.#screen.row(`dan has it after ${inSeconds(takeoverMs)}: cleo's lease ran out`);
    const heirWrite = (await dan.next("written")).outcome;
    this.#screen.row(`dan writes with token ${heir.token}: ${heirWrite}`);
    await sleep(BEAT_MS);
    cleo.signal("SIGCONT");
    this.#screen.mark("cleo", "idle");
    this.#screen.row(`kill -CONT ${cleo.pid}`);
    const { held, stoppedMs, threw } = await cleo.next("awake");
    this.#screen.row(`cleo's first statement: lease.held is ${held}; assertHeld() throws ${threw}`);
    const staleWrite = (await cleo.next("written")).outcome;
    this.#screen.row(`cleo writes all the same, with token ${mine.token}: ${staleWrite}`);
    const staleRelease = (await cleo.next("released")).outcome;
    this.#screen.row(`cleo's release() says "${staleRelease}"`);
    const heirKnownToEngine = await this.#locks!.check(heir.sequencer);
    dan.order({ do: "give-back" });
    const heirHeldAfterwards = (await dan.next("still")).held;
    this.#screen.row(heirHeldAfterwards ? "dan holds on, and gives back when it is done" : "dan lost it");
    await dan.next("released");
    return {
      sleeper: "cleo",
      token: BigInt(mine.token),
      ttlMs: SHORT_TTL_MS,
      stoppedMs,
      heir: "dan",
      heirToken: BigInt(heir.token),
      takeoverMs,
      heldAfterwards: held,
      assertHeldThrew: threw,
      heirWrite,
      staleWrite,
      staleRelease,
      heirHeldAfterwards,
      heirKnownToEngine,
    };
  }
}
