// More claims than a client remembers. The nodes never answer, so all claims stay pending.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AcquireRequest,
  Quorum,
  type QuorumNode,
  resolveQuorum,
} from "holdfast/internal/quorum";
import { World } from "../world.js";

const MORE_THAN_REMEMBERED = 10_500;
const PATIENCE_MS = 1_000;

test("a claim that is repeated among very many others continues from its own last attempt", () => {
  const { world, ask, attemptsOf } = clientOfSilentNodes();
  ask("again");
  for (let i = 0; i < MORE_THAN_REMEMBERED; i++) ask(`other ${i}`);
  ask("again");
  assert.deepEqual(attemptsOf("again"), [1, 2]);
  world.runUntil(world.now + 10 * PATIENCE_MS);
});

test("a forgotten claim comes back with a higher attempt number than any that it used", () => {
  const { world, ask, attemptsOf } = clientOfSilentNodes();
  for (let i = 0; i < 3; i++) ask("again");
  world.runUntil(world.now + 10 * PATIENCE_MS);
  for (let i = 0; i < MORE_THAN_REMEMBERED; i++) ask(`other ${i}`);
  ask("again");
  const [, , last, next] = attemptsOf("again");
  assert.ok(
    next! > last!,
    `attempt ${next} after ${last}: a late release of that one would end it`,
  );
  world.runUntil(world.now + 10 * PATIENCE_MS);
});

function clientOfSilentNodes() {
  const world = new World(1_000_000);
  const asked = new Map<string, number[]>();
  const names = ["n0", "n1", "n2"];
  const nodes = names.map(
    (name, i): QuorumNode => ({
      name,
      ask: (request) => {
        if (request.verb === "acquire" && i === 0) note(request);
      },
    }),
  );
  const note = ({ id, attempt }: AcquireRequest) =>
    asked.set(id, [...(asked.get(id) ?? []), attempt]);
  const quorum = new Quorum(nodes, resolveQuorum(names, {}), {
    clock: { now: () => world.now, timer: (delayMs, act) => world.after(delayMs, act) },
    random: () => 0.5,
    mintNonce: () => "nonce",
    report: () => {},
  });
  const ask = (id: string) => {
    const what = { resource: "r", mode: "x", ttlMs: 30_000, delayMs: 0, tokens: 1 } as const;
    quorum.acquire({ ...what, id, label: "" }, { patienceMs: PATIENCE_MS, order: 1 }, () => {});
  };
  return { world, ask, attemptsOf: (id: string) => asked.get(id) ?? [] };
}
