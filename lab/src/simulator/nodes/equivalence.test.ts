// A real Redis and the simulated node get the same requests at the same instants: the real one
// answers first and tells the time of its clock, and the simulated one handles the request at that
// time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startRedis } from "@holdfast/servers";
import {
  adaptClient,
  type NodeAnswer,
  type NodeRequest,
  RedisNode,
  resolveQuorum,
} from "holdfast/internal/quorum";
import { Redis } from "ioredis";
import { Random } from "../random.js";
import { SimulatedNode } from "./simulated-node.js";

const SEQUENCES = 60;
const STEPS = 60;
const IDS = ["a1", "b2", "c3"];

test("a real node and the simulated one give the same answers to random sequences", async (t) => {
  await using server = await startRedis();
  const client = new Redis(server.port);
  try {
    const terms = resolveQuorum(["n0", "n1", "n2"], { maxTtlMs: 1_000, maxSkewMs: 200 });
    const real = new RedisNode("n0", adaptClient(client), terms, () => {});
    const runId = /run_id:(\w+)/.exec(await client.info("server"))![1]!;
    const replId = /master_replid:(\w+)/.exec(await client.info("replication"))![1]!;
    const kinds = new Set<string>();
    for (let seed = 1; seed <= SEQUENCES; seed++) {
      await client.flushall();
      const simulated = new SimulatedNode(runId, replId, terms);
      const random = new Random(seed);
      const asked: string[] = [];
      let us = 0;
      let nonce = "";
      for (let step = 0; step < STEPS; step++) {
        const request = requestOf(random, us, nonce, step, { runId, replId });
        const [answer, at] = await new Promise<[NodeAnswer, number]>((done) =>
          real.ask(request, (...said) => done(said)),
        );
        us = at;
        asked.push(JSON.stringify(request));
        const expected = simulated.handle(request, at);
        assert.deepEqual(sorted(answer), sorted(expected), `seed ${seed}:\n${asked.join("\n")}`);
        kinds.add(`${request.verb} ${answer.kind}`);
        if (answer.kind === "uncertified") nonce = answer.nonce ?? "";
        if (random.chance(0.05)) await sleep(random.between(1, 30));
      }
    }
    // Sequences that never reach these answers would prove little.
    for (const kind of EXPECTED) assert.ok(kinds.has(kind), `no sequence led to ${kind}`);
    t.diagnostic([...kinds].sort().join(", "));
  } finally {
    client.disconnect();
  }
});

const EXPECTED = [
  ...["accepted", "busy", "counter", "skew", "known", "gone", "uncertified"].map(
    (k) => `acquire ${k}`,
  ),
  ...["renew renewed", "renew gone", "release released", "release gone", "check checked"],
  ...["revoke revoked", "revoke gone", "inspect view", "mark uncertified", "certify certified"],
];

function requestOf(
  random: Random,
  us: number,
  nonce: string,
  step: number,
  life: { runId: string; replId: string },
): NodeRequest {
  const resource = random.chance(0.8) ? "r" : "s";
  const id = random.pick(IDS);
  if (step === 2) return { verb: "mark", nonce: `nonce${random.below(10)}` };
  // Most sequences are certified early; some never are.
  if (step === 3 && random.chance(0.9)) return { verb: "certify", ...life, nonce };
  if (random.chance(0.03)) return { verb: "certify", ...life, nonce: "other" };
  const token = us + random.below(3);
  switch (random.below(10)) {
    case 0:
      return {
        ...{ verb: "renew", resource, id, ttlMs: random.pick([5, 50, 500]) },
        ...{ order: orderAt(random, step), index: random.below(3), leave: random.chance(0.1) },
      };
    case 1:
    case 2: {
      const tombstoneMs = random.pick([0, 0, 20, 500]);
      const upTo = random.pick([1, 2, Number.MAX_SAFE_INTEGER]);
      const order = random.chance(0.5) ? Number.MAX_SAFE_INTEGER : orderAt(random, step);
      return { verb: "release", resource, id, upTo, order, tombstoneMs, tell: random.chance(0.5) };
    }
    case 3:
      return { verb: "inspect", resource };
    case 4:
      return random.chance(0.5)
        ? { verb: "check", resource, mode: "x", token: fences.at(-1) ?? token }
        : {
            ...{ verb: "revoke", resource, force: random.chance(0.5) },
            token: (fences.at(-1) ?? token) + random.below(2),
          };
    default: {
      const fence = us + random.pick([-500_000, 0, 1_000, 1_000, 1_000, 5_000, 400_000]);
      fences.push(fence);
      return {
        ...{ verb: "acquire", resource, id, attempt: 1 + random.below(3) },
        ...{ mode: random.chance(0.6) ? "x" : "s", ttlMs: random.pick([5, 20, 300]) },
        ...{
          delayMs: random.pick([0, 0, 20]),
          fence: Math.max(1, fence),
          tokens: 1 + random.below(3),
        },
        ...{
          label: "l:a:b",
          past: random.chance(0.2) ? fence + random.pick([0, 500_000]) : 0,
          ticket: random.chance(0.5) ? random.below(5) : 0,
          arrivalMs: random.pick([0, 10, 100]),
        },
        order: orderAt(random, step),
      };
    }
  }
}

/** Mostly rising. A late call has an earlier number. */
function orderAt(random: Random, step: number): number {
  return 1_000 + 10 * step - (random.chance(0.8) ? 0 : random.below(300));
}

/** Fences that were proposed, so that checks and revocations find a grant. */
const fences: number[] = [];

/** Sorts the holders, because a hash in Redis has no order. */
function sorted(answer: NodeAnswer): unknown {
  if (!("holders" in answer)) return answer;
  const holders = [...answer.holders].sort((a, b) => a.fence - b.fence || a.ageMs - b.ageMs);
  return { ...answer, holders };
}
