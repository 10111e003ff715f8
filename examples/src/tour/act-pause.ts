import { setTimeout as sleep } from "node:timers/promises";
import { inSeconds, type PauseFacts } from "./facts.js";
import { instant } from "./messages.js";
import { BEAT_MS, type Stage } from "./stage.js";

const TTL_MS = 2_000;
const HEIR_TTL_MS = 10_000;

/** A holder stands still past its ttl and comes back, sure that it still holds the lock. */
export async function pause(stage: Stage): Promise<PauseFacts> {
  const { screen, locks } = stage;
  const { cleo, dan } = stage.cast;
  screen.title(
    "3  A holder stands still, and comes back too late",
    `cleo takes the lock for ${inSeconds(TTL_MS)} and is stopped by SIGSTOP:`,
    "alive, but it cannot renew.",
  );
  cleo.order({ do: "freeze", ttlMs: TTL_MS });
  const mine = await cleo.next("granted");
  dan.order({ do: "take", ttlMs: HEIR_TTL_MS });
  await stage.untilWaiting(1);
  screen.row("cleo holds, dan stands in line");
  await sleep(BEAT_MS / 2);
  cleo.signal("SIGSTOP");
  stage.endGrant("cleo", instant());
  screen.mark("cleo", "stopped");
  screen.row(`kill -STOP ${cleo.pid}`);

  const heir = await dan.next("granted");
  const afterGrantMs = heir.at - mine.at;
  screen.row(`dan has it: cleo's lease ran out`);
  const { outcome: heirWrite } = await dan.next("written");
  screen.row(`dan writes, with token ${heir.token}: ${heirWrite}`);
  await sleep(BEAT_MS);

  screen.mark("cleo", "idle");
  screen.row(`kill -CONT ${cleo.pid}`);
  cleo.signal("SIGCONT");
  const { held, stoppedMs, threw } = await cleo.next("awake");
  await screen.beat();
  screen.row(`cleo's first statement: held is ${held}`);
  await screen.beat();
  screen.row(`lease.assertHeld() throws ${threw}`);
  const { outcome: staleWrite } = await cleo.next("written");
  await screen.beat();
  screen.row(`cleo writes anyway, with token ${mine.token}: ${staleWrite}`);
  const { outcome: staleRelease } = await cleo.next("released");
  await screen.beat();
  screen.row(`lease.release() says "${staleRelease}"`);
  await screen.beat();

  const heirKnownToEngine = await locks.check(heir.sequencer);
  dan.order({ do: "give-back" });
  const { held: heirHeldAfterwards } = await dan.next("still");
  screen.row(heirHeldAfterwards ? "dan still holds, and gives back" : "dan lost it");
  await dan.next("released");
  return {
    sleeper: "cleo",
    token: BigInt(mine.token),
    ttlMs: TTL_MS,
    stoppedMs,
    heir: "dan",
    heirToken: BigInt(heir.token),
    afterGrantMs,
    heldAfterwards: held,
    assertHeldThrew: threw,
    heirWrite,
    staleWrite,
    staleRelease,
    heirHeldAfterwards,
    heirKnownToEngine,
  };
}
