import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Told } from "./actor.js";
import { inSeconds, type PauseFacts } from "./facts.js";
import { instant } from "./messages.js";
import { type Recipe, Shop } from "./shop.js";
import { BEAT_MS, type Stage } from "./stage.js";

const TTL_MS = 1_000;
const HEIR_TTL_MS = 10_000;
const RED = 31;

/** A holder stands still between its read and its write. Comparing tokens comes too late. */
export async function pause(stage: Stage): Promise<PauseFacts> {
  stage.screen.title(
    "3  A holder stands still between its read and its write",
    `One unit is in stock. cleo takes the lock for ${inSeconds(TTL_MS)}, reads, and is stopped by`,
    "SIGSTOP: alive, but it cannot renew. The shop compares tokens when it is",
    "written to, and refuses one that is smaller than the last that wrote.",
  );
  return play(stage, "compared");
}

/** The same again, with tokens that are registered before the read. */
export async function fencedPause(stage: Stage): Promise<PauseFacts> {
  stage.screen.title(
    "4  The same, with a fence",
    "Each holder registers its token in the shop before it reads. Only the token",
    "that was registered last may write.",
  );
  return play(stage, "registered");
}

async function play(stage: Stage, recipe: Recipe): Promise<PauseFacts> {
  const { screen, locks } = stage;
  const { dan } = stage.cast;
  const { mine, heir } = await bothRead(stage, recipe);
  const { held, stoppedMs, threw } = await wake(stage, recipe);
  const sales = await bothSell(stage, recipe, mine.token, heir.token);
  const heirKnownToEngine = await locks.check(heir.sequencer);
  dan.order({ do: "give-back" });
  const { held: heirHeldAfterwards } = await dan.next("still");
  if (recipe === "registered") {
    screen.row(heirHeldAfterwards ? "dan still holds, and gives back" : "dan lost it");
  }
  await dan.next("released");
  return {
    sleeper: "cleo",
    token: BigInt(mine.token),
    ttlMs: TTL_MS,
    stoppedMs,
    heir: "dan",
    heirToken: BigInt(heir.token),
    afterGrantMs: heir.at - mine.at,
    heldAfterwards: held,
    assertHeldThrew: threw,
    ...sales,
    heirHeldAfterwards,
    heirKnownToEngine,
  };
}

/** cleo reads and is stopped; dan is granted the lock when cleo's lease is over, and reads too. */
async function bothRead(stage: Stage, recipe: Recipe) {
  const { screen } = stage;
  const { cleo, dan } = stage.cast;
  const shop = shopOf(stage);
  const reads = (token: string) =>
    recipe === "registered" ? `registers ${token}, then reads` : "reads";
  cleo.order({ do: "enter", ttlMs: TTL_MS, shop, recipe, until: wakeFile(stage, recipe) });
  const mine = await cleo.next("granted");
  const { units } = await cleo.next("read");
  dan.order({ do: "enter", ttlMs: HEIR_TTL_MS, shop, recipe });
  await stage.untilWaiting(1);
  screen.row(`cleo ${reads(mine.token)}: ${units} in stock`);
  await sleep(BEAT_MS / 2);
  cleo.signal("SIGSTOP");
  stage.endGrant("cleo", instant());
  screen.mark("cleo", "stopped");
  screen.row(`kill -STOP ${cleo.pid}`);

  const heir = await dan.next("granted");
  const { units: heirUnits } = await dan.next("read");
  screen.row("dan has it: cleo's lease ran out");
  await screen.beat();
  screen.row(`dan ${reads(heir.token)}: ${heirUnits} in stock`);
  await sleep(BEAT_MS / 2);
  return { mine, heir };
}

async function wake(stage: Stage, recipe: Recipe): Promise<Told<"awake">> {
  const { screen } = stage;
  const { cleo } = stage.cast;
  screen.mark("cleo", "idle");
  screen.row(`kill -CONT ${cleo.pid}`);
  await writeFile(wakeFile(stage, recipe), "");
  cleo.signal("SIGCONT");
  const awake = await cleo.next("awake");
  await screen.beat();
  if (recipe === "compared") return awake;
  screen.row(`cleo's first statement: held is ${awake.held}`);
  await screen.beat();
  screen.row(`lease.assertHeld() throws ${awake.threw}`);
  await screen.beat();
  return awake;
}

/** cleo sells what it read before it was stopped, then dan sells what it read. */
async function bothSell(stage: Stage, recipe: Recipe, token: string, heirToken: string) {
  const { screen } = stage;
  const { cleo, dan } = stage.cast;
  const { outcome: staleSale } = await cleo.next("sold");
  screen.row(`cleo sells, with token ${token}: ${staleSale}`);
  const { outcome: staleRelease } = await cleo.next("released");
  await screen.beat();
  dan.order({ do: "sell" });
  const { outcome: heirSale } = await dan.next("sold");
  screen.row(`dan sells, with token ${heirToken}: ${heirSale}`);
  await screen.beat();
  const ledger = new Shop(shopOf(stage), recipe);
  const sold = ledger.sold();
  ledger.close();
  screen.row(sold > 1 ? screen.paint(RED, `${sold} of 1 are sold`) : `${sold} of 1 is sold`);
  await screen.beat();
  if (recipe === "registered") {
    screen.row(`cleo's release() says "${staleRelease}"`);
    await screen.beat();
  }
  return { staleSale, heirSale, sold, staleRelease };
}

function shopOf({ folder }: Stage): string {
  return join(folder, "shop.db");
}

function wakeFile({ folder }: Stage, recipe: Recipe): string {
  return join(folder, `wake-${recipe}`);
}
