// More claims than a client remembers when nobody holds them.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type AcquireRequest,
  type NodeAnswer,
  type NodeRequest,
  Quorum,
  type QuorumNode,
  resolveQuorum,
} from "holdfast/internal/quorum";
import { World } from "../world.js";

const MORE_THAN_REMEMBERED = 10_500;
const PATIENCE_MS = 1_000;
const TTL_MS = 30_000;
const DELAY_MS = 7_000;
const NAMES = ["n0", "n1", "n2"];

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

test("a client remembers all grants that it holds, and forgets them when they are released", () => {
  const { quorum, grant, remembered } = clientOfWillingNodes();
  const refs = grant("held", MORE_THAN_REMEMBERED);
  assert.equal(remembered(refs), refs.length);
  for (const ref of refs) {
    quorum.release({ ...ref, tombstoneMs: 0, patienceMs: PATIENCE_MS }, () => {});
  }
  assert.equal(remembered(refs), 0);
});

test("grants that ended without a release are forgotten while others are made", () => {
  const { world, quorum, grant, remembered } = clientOfWillingNodes();
  const [kept, ...lost] = grant("lost", 2 * MORE_THAN_REMEMBERED);
  world.runUntil(world.now + TTL_MS / 2);
  quorum.renew({ ...kept!, ttlMs: TTL_MS, order: 2, index: 0, leave: false }, ({ kind }) =>
    assert.equal(kind, "renewed"),
  );
  world.runUntil(world.now + TTL_MS / 2 + DELAY_MS + 1);
  assert.equal(remembered(lost), lost.length);
  const later = grant("later", MORE_THAN_REMEMBERED);
  assert.equal(remembered(later), later.length);
  assert.ok(remembered(lost) <= MORE_THAN_REMEMBERED, `${remembered(lost)} that ended are left`);
  assert.equal(remembered([kept!]), 1, "it was renewed, and lives");
});

/** The nodes accept, renew and release whatever they are asked to. */
function clientOfWillingNodes() {
  const world = new World(1_000_000);
  const answerTo: Partial<Record<NodeRequest["verb"], NodeAnswer>> = {
    acquire: { kind: "accepted" },
    renew: { kind: "renewed", leftMs: TTL_MS },
    release: { kind: "released" },
  };
  const nodes = NAMES.map(
    (name): QuorumNode => ({
      name,
      ask: ({ verb }, answered) => answered(answerTo[verb]!, world.now * 1e3),
    }),
  );
  const quorum = quorumOf(world, nodes);
  const terms = { mode: "x", ttlMs: TTL_MS, delayMs: DELAY_MS, tokens: 1, label: "" } as const;
  const grant = (name: string, count: number) =>
    Array.from({ length: count }, (_, i) => {
      const ref = { resource: `${name} ${i}`, id: `${name} ${i}` };
      quorum.acquire({ ...terms, ...ref }, { patienceMs: PATIENCE_MS, order: 1 }, ({ kind }) =>
        assert.equal(kind, "granted"),
      );
      return ref;
    });
  const remembered = (refs: readonly { readonly id: string }[]) =>
    refs.filter(({ id }) => quorum.lockDelayOf(id) === DELAY_MS).length;
  return { world, quorum, grant, remembered };
}

/** The nodes never answer, so all claims stay pending. */
function clientOfSilentNodes() {
  const world = new World(1_000_000);
  const asked = new Map<string, number[]>();
  const nodes = NAMES.map(
    (name, i): QuorumNode => ({
      name,
      ask: (request) => {
        if (request.verb === "acquire" && i === 0) note(request);
      },
    }),
  );
  const note = ({ id, attempt }: AcquireRequest) =>
    asked.set(id, [...(asked.get(id) ?? []), attempt]);
  const quorum = quorumOf(world, nodes);
  const ask = (id: string) => {
    const what = { resource: "r", mode: "x", ttlMs: 30_000, delayMs: 0, tokens: 1 } as const;
    quorum.acquire({ ...what, id, label: "" }, { patienceMs: PATIENCE_MS, order: 1 }, () => {});
  };
  return { world, ask, attemptsOf: (id: string) => asked.get(id) ?? [] };
}

function quorumOf(world: World, nodes: readonly QuorumNode[]): Quorum {
  return new Quorum(nodes, resolveQuorum(NAMES, {}), {
    clock: { now: () => world.now, timer: (delayMs, act) => world.after(delayMs, act) },
    random: () => 0.5,
    mintNonce: () => "nonce",
    report: () => {},
  });
}
