import type { ZooKeeperServer } from "@holdfast/servers";
import type { TrueGrant } from "../../../../conformance/index.js";
import { hostInstant, systemClock } from "../../../../core/runtime/clock.js";
import { TOKEN_RANGE } from "../../node-record.js";
import { getChildren, getData, type Operation, type Stat, sync } from "../../wire/operations.js";
import type { Session } from "../../wire/session.js";

const ASK_MS = 5_000;
// Servers end sessions at the next multiple of their tickTime, which is 50 ms here.
const TICK_MS = 50;
const QUEUE_MEMBER = /^(x|s\d+)-[0-9a-f]{32}-(?:left-([0-9a-f]+)-)?(-?\d{9,10})$/;

async function ask<T>(session: Session, operation: Operation<T>): Promise<T | null> {
  return (await session.ask(operation, systemClock.now() + ASK_MS)).value;
}

/**
 * The holders of a resource: the first node if it is exclusive, else the shared ones at the head.
 * An ephemeral node lives as long as its session. The servers say when they last answered a
 * session, on the monotonic clock of this host, and the timeout of the session.
 */
export async function trueSessions(
  session: Session,
  members: readonly ZooKeeperServer[],
  resourcePath: string,
): Promise<readonly TrueGrant[]> {
  await ask(session, sync(resourcePath));
  const names = (await ask(session, getChildren(resourcePath)))?.names ?? [];
  const queue = names
    .flatMap((name) => {
      const [, kind, left, number] = QUEUE_MEMBER.exec(name) ?? [];
      return kind === undefined ? [] : [{ name, kind, left, number: Number(number) }];
    })
    .sort((a, b) => a.number - b.number);
  const firstExclusive = queue.findIndex(({ kind }) => kind === "x");
  const count = firstExclusive < 0 ? queue.length : Math.max(1, firstExclusive);
  const grants: TrueGrant[] = [];
  for (const { name, left } of queue.slice(0, count)) {
    const node = await ask(session, getData(`${resourcePath}/${name}`));
    if (node === null) continue;
    const czxid = left === undefined ? node.stat.czxid : BigInt(`0x${left}`);
    const remainingMs =
      left === undefined
        ? await sessionLeftMs(members, node.stat.ephemeralOwner)
        : (JSON.parse(node.data.toString()) as { ttlMs: number }).ttlMs - ageMs(node.stat.ctime);
    grants.push({ token: czxid * BigInt(TOKEN_RANGE), remainingMs });
  }
  return grants;
}

/** Observers count from their sight of the last change, so at the earliest from its write. */
export async function trueRecord(session: Session, path: string): Promise<readonly TrueGrant[]> {
  await ask(session, sync(path));
  const node = await ask(session, getData(path));
  if (node === null) return [];
  const { stat, data } = node;
  const { grants } = JSON.parse(data.toString()) as {
    grants: Record<string, { token: string; ttlMs: number }>;
  };
  return Object.values(grants).map(({ token, ttlMs }) => ({
    ...{ token: BigInt(token), remainingMs: ttlMs - ageMs(lastChange(stat)) },
  }));
}

function lastChange({ mtime }: Stat): bigint {
  return mtime;
}

/** The servers use the clock of this host, and round down to milliseconds. */
function ageMs(since: bigint): number {
  return Math.max(0, Date.now() - Number(since) - 1);
}

async function sessionLeftMs(members: readonly ZooKeeperServer[], owner: bigint): Promise<number> {
  const mark = `sid=0x${owner.toString(16)},`;
  // A member that hung knows no connection, or one that has moved. The last answer counts.
  const asked = members.map((member) => member.command("cons").catch(() => ""));
  const lines = (await Promise.all(asked)).flatMap((answer) => answer.split("\n"));
  const ends = lines
    .filter((line) => line.includes(mark))
    .map((line) => {
      const [timeoutMs, answeredAt] = ["to", "lresp"].map((word) =>
        Number(new RegExp(`,${word}=(\\d+)`).exec(line)?.[1]),
      );
      // A connection without an answer says nothing.
      return answeredAt! === 0 ? -Infinity : answeredAt! + timeoutMs! + TICK_MS;
    })
    .filter((end) => end > -Infinity);
  if (ends.length > 0) return Math.max(...ends) - hostInstant();
  throw new Error(`no server has a connection of session 0x${owner.toString(16)}`);
}
