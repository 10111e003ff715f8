import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { RedisOptions } from "@holdfast/servers";
import { keyOf } from "../../../redis/protocol/keys.js";
import { QUORUM_DEFAULTS } from "../../options.js";
import { TestQuorum } from "./test-quorum.fixture.js";

const NODES = 5;
export const MAX_TTL_MS = 3_000;
const RENEW_MS = 150;
/** A node that is not back by then counts as never coming back. */
const HANG_MS = 30_000;

export interface Roll {
  readonly waiters: number;
  readonly options?: RedisOptions;
  /** The fault of one node. Resolves when the node answers again. */
  fault(quorum: TestQuorum, node: number): Promise<unknown>;
}

export const PERSISTENT: RedisOptions = { args: ["--save", "3600 1"] };

export const ways = {
  "without persistence": {
    fault: ({ servers }: TestQuorum, node: number) => servers[node]!.restart(),
  },
  "with persistence": {
    options: PERSISTENT,
    fault: ({ servers }: TestQuorum, node: number) => servers[node]!.restart({ signal: "SIGTERM" }),
  },
} as const;

/** Holds one lease while each node has its fault. The next fault begins when the node has the lease again. */
export async function roll({ waiters, options = {}, fault }: Roll): Promise<void> {
  await using quorum = await TestQuorum.start(NODES, { maxTtlMs: MAX_TTL_MS }, options);
  const holder = await quorum.locks();
  const lease = await holder.acquire("a", { ttlMs: MAX_TTL_MS, renewEveryMs: RENEW_MS });
  const over = new AbortController();
  const waiting = await Promise.all(Array.from({ length: waiters }, () => quorum.locks()));
  const outcomes = waiting.map((locks) =>
    locks.acquire("a", { waitMs: Infinity, signal: over.signal, retry: patience() }).then(
      () => "granted",
      () => "waited",
    ),
  );
  try {
    for (let node = 0; node < NODES; node++) {
      await fault(quorum, node);
      await backOn(quorum, node, lease.token, () => lease.held);
    }
    assert.ok(lease.held, "the lease was lost");
  } finally {
    over.abort();
  }
  assert.deepEqual([...new Set(await Promise.all(outcomes))], waiters > 0 ? ["waited"] : []);
  assert.equal(await lease.release(), "released");
}

/** Resolves when the node has the record of this token again. */
async function backOn(quorum: TestQuorum, node: number, token: bigint, isHeld: () => boolean) {
  const key = keyOf(QUORUM_DEFAULTS.prefix, "a");
  const until = performance.now() + HANG_MS;
  for (;;) {
    const certificate = await quorum.admins[node]!.get(`{${QUORUM_DEFAULTS.prefix}}:certificate`);
    const info = await quorum.admins[node]!.info("server");
    const isCertified = certificate?.startsWith(/run_id:(\w+)/.exec(info)![1]!);
    const [second] = await quorum.admins[node]!.time();
    const records = await quorum.admins[node]!.hvals(key);
    const isThere = records.some((record) => {
      const [, , fence, , , , , , , ends] = record.split(":");
      return fence === String(token) && Number(ends) > Number(second) * 1e3;
    });
    if (isCertified && isThere) return;
    assert.ok(isHeld(), `the lease was lost before node ${node} had it again`);
    assert.ok(performance.now() < until, `node ${node} never has the grant again`);
    await sleep(20);
  }
}

/** Retries for ever: a node that is missing for a moment must not end a wait. */
function* patience(): Generator<number> {
  for (;;) yield 100;
}
