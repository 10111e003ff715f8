import { setTimeout as sleep } from "node:timers/promises";
import { inMs, inSeconds, type KillFacts } from "./facts.js";
import { instant } from "./messages.js";
import { BEAT_MS, RESOURCE, type Stage } from "./stage.js";

const TTL_MS = 10_000;

/** A holder dies without a word. How long does the next waiter wait, and why no longer? */
export async function kill(stage: Stage): Promise<KillFacts> {
  const { screen, locks } = stage;
  const { ada, ben, cleo, dan } = stage.cast;
  screen.title(
    "2  A holder is killed",
    "ben takes the lock and dies by SIGKILL: no clean-up, no goodbye.",
  );
  ben.order({ do: "take", ttlMs: TTL_MS });
  const { token } = await ben.next("granted");
  screen.row(`ben holds, for ${inSeconds(TTL_MS)} unless renewed`);
  const line = [ada, cleo, dan];
  for (const [i, actor] of line.entries()) {
    actor.order({ do: "take", ttlMs: TTL_MS });
    await stage.untilWaiting(i + 1);
  }
  screen.row("ada, cleo and dan wait in the queue");
  await sleep(BEAT_MS);
  const { holders } = await locks.inspect(RESOURCE);
  const ttlLeftMs = holders[0]?.remainingMs ?? 0;
  const killedAt = instant();
  ben.signal("SIGKILL");
  stage.endGrant("ben", killedAt);
  screen.mark("ben", "dead");
  screen.row(`kill -KILL ${ben.pid}, with ${inSeconds(ttlLeftMs)} left`);
  const heir = await ada.next("granted");
  const takeoverMs = heir.at - killedAt;
  screen.row(`ada has it, ${inMs(takeoverMs)} after the kill`);
  for (const actor of line) {
    if (actor !== ada) {
      await actor.next("granted");
      screen.row(`${actor.name} was next in the queue`);
    }
    await sleep(BEAT_MS / 4);
    actor.order({ do: "give-back" });
    await actor.next("released");
  }
  const tokens = { token: BigInt(token), heirToken: BigInt(heir.token) };
  return { victim: "ben", heir: "ada", ...tokens, takeoverMs, ttlLeftMs };
}
