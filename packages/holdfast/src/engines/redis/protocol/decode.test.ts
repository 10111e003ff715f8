// Answers that our script never gives. No server can give all of them, so these tests use none.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Failed, GrantRef } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import { channels } from "../../../events.js";
import { now } from "../../../test-support/call.fixture.js";
import { claim } from "../../../test-support/claim.fixture.js";
import type { RedisConnection } from "../clients/connection.js";
import { RedisEngine } from "../engine.js";
import { REDIS_DEFAULTS } from "../options.js";

const ID = "0123456789abcdef".repeat(2);
const TOKEN = "1792000000000000";
/** Small counts, numbers from 2^53 on, and times that no clock has. */
const NO_TOKENS = ["1", "12", "999999", "9007199254740992", "17920000000000000", "9".repeat(40)];
const HOLDER = ["x", TOKEN, "label", 1_000, 0];
const GRANTED = ["granted", TOKEN, 1, 10_000];
const QUEUED = ["queued", 0, 1_000, [HOLDER]];
const VIEW = [[HOLDER], [["s", "label"]], 0];
const REFUSED = new Error("OOM command not allowed");

/** The answer with another value at this index. */
function withValue(answer: readonly unknown[], place: number, value: unknown): unknown[] {
  return answer.map((one, i) => (i === place ? value : one));
}

/**
 * Wrong variants of the answer: too short, too long, and with something else for each number or
 * list.
 */
function wrongVariants(answer: readonly unknown[]): unknown[] {
  const wrong = ["", "x", "1.5", 1.5, -5, null, true, Buffer.from("5"), ["5"], {}];
  return [
    answer.slice(0, -1),
    [...answer, 1],
    ...(typeof answer[0] === "string" ? [withValue(answer, 0, Buffer.from(answer[0]))] : []),
    ...answer.flatMap((one, i) =>
      typeof one === "number" || one === TOKEN
        ? wrong.map((value) => withValue(answer, i, value))
        : [],
    ),
    ...answer.flatMap((one, i) => (Array.isArray(one) ? [withValue(answer, i, "5")] : [])),
    ...answer.flatMap((one, i) =>
      Array.isArray(one) ? [withValue(answer, i, [HOLDER, "5"])] : [],
    ),
  ];
}

const BAD_HOLDERS = [
  withValue(HOLDER, 0, "z"),
  withValue(HOLDER, 2, null),
  withValue(HOLDER, 4, 2),
  HOLDER.slice(1),
];

/** Wrong for every operation. */
const NEVER: readonly unknown[] = [
  ...[undefined, null, true, false, {}, 2, -1, 1.5, Number.NaN, 1n, Symbol("1")],
  ...["", "QUEUED", "OK", "PONG", " 1", "1 ", "01", "1n", "0x1", "granted", "released", "renewed"],
  ...[
    "q:",
    "q:1:2:3:4",
    "q:a:2:3:4:label",
    `${ID} 0 ${TOKEN} 1`,
    `${ID} 0 ${TOKEN} 1 3000 1`,
    `${ID} 0 ${TOKEN} 1 x`,
  ],
  ...[Buffer.from("1"), Buffer.from("QUEUED"), Buffer.from("1792000000000000"), REFUSED],
  ...[
    [],
    [[]],
    [1],
    [null],
    [REFUSED],
    ["done"],
    ["GRANTED", TOKEN, 1, 10_000],
    ["error"],
    ["gone"],
  ],
  ...[
    ["gone", "away"],
    ["gone", null],
    ["gone", "expired", 1],
    ["error", null],
    ["error", "a", 1],
  ],
  ...[["released", 1], ["renewed"], ["withdrawn", 1], ["unknown", 1], ["revoked", 1], ["limit"]],
  ...NO_TOKENS.map((token) => withValue(GRANTED, 1, token)),
  ...[
    ...wrongVariants(GRANTED),
    ...wrongVariants(QUEUED),
    ...wrongVariants(["busy", 1_000, [HOLDER]]),
  ],
  ...BAD_HOLDERS.map((holder) => withValue(QUEUED, 3, [holder])),
  ...BAD_HOLDERS.map((holder) => ["busy", 1_000, [holder]]),
];

const [first, second] = [claim("a"), claim("b")];
const refs = [first, second];
const releases = refs.map((ref) => ({ ...ref, tombstoneMs: 0 }));

interface Question {
  ask(engine: RedisEngine): Promise<unknown>;
  /** Answers that are wrong for this operation only. */
  readonly wrong?: readonly unknown[];
  /** Answers of NEVER that are right for this operation. */
  isRight?(reply: unknown, replicas: number | null): boolean;
}

const MESSAGE = `${ID} 0 ${TOKEN} 1 3000`;
const QUESTIONS: Readonly<Record<string, Question>> = {
  tryAcquire: {
    ask: (engine) => engine.tryAcquire(first, now()),
    wrong: [
      ...[1, 0, MESSAGE, QUEUED, `q:0:1000:500:${TOKEN}:label`, ["released"], ["limit", "x"]],
      ...NO_TOKENS,
    ],
  },
  enqueue: {
    ask: (engine) => engine.queue!.enqueue(first, now()),
    wrong: [
      ...[1, 0, MESSAGE, ["busy", 1_000, [HOLDER]], ["withdrawn"], ["renewed", 10_000]],
      ...NO_TOKENS,
    ],
  },
  "renew one": {
    ask: (engine) => engine.renew([first], now()),
    wrong: [0, TOKEN, MESSAGE, ["released"], GRANTED, ["renewed", -1], ["renewed", "x"]],
  },
  "renew many": {
    ask: (engine) => engine.renew(refs, now()),
    // With replicas, each renewal has its own answer.
    isRight: (reply, replicas) => replicas !== null && Array.isArray(reply) && reply.length === 2,
    wrong: [
      ...[0, TOKEN, ["released"], ["renewed", 10_000], [1, 1], [0], [0, 1], [0, "1"], [0, null]],
      ...[
        [0, ["renewed", 10_000], 1],
        [2, ["gone", "expired"]],
        [-1, ["gone", "expired"]],
      ],
      [0, ["gone", "expired"], 0, ["gone", "expired"]],
      [1, ["gone", "expired"], 0, ["gone", "expired"]],
      [0, ["gone", "expired"], 1, ["gone", "expired"], 2, ["gone", "expired"]],
    ],
  },
  "release one": {
    ask: (engine) => engine.release(releases.slice(1), now()),
    wrong: [
      ...[0, TOKEN, ["renewed", 10_000], ["withdrawn"], GRANTED],
      ...NO_TOKENS.map((token) => `${ID} 0 ${token} 1 3000`),
    ],
  },
  "release many": {
    ask: (engine) => engine.release(releases, now()),
    isRight: (reply) => Array.isArray(reply) && reply.length === 2 && reply.includes(1),
    wrong: [0, 1, "1", MESSAGE, ["released"], [1, 1, 1], "11"],
  },
  check: { ask: (engine) => engine.check({ ...first, token: 5n }), wrong: [["gone"], TOKEN] },
  revoke: {
    ask: (engine) => engine.revoke({ resource: "a", token: 5n, force: false }),
    wrong: [0, 1, ["gone", "expired"], ["released"]],
    isRight: (reply) => String(reply) === "gone",
  },
  inspect: {
    ask: (engine) => engine.inspect("a"),
    wrong: [
      ...[
        0,
        1,
        GRANTED,
        QUEUED,
        ...wrongVariants(VIEW),
        withValue(VIEW, 1, [["s"]]),
        withValue(VIEW, 1, [["z", "a"]]),
      ],
      ...[
        withValue(VIEW, 1, [["s", 5]]),
        ...BAD_HOLDERS.map((holder) => withValue(VIEW, 0, [holder])),
      ],
    ],
  },
  "heartbeat of one": {
    ask: (engine) => engine.queue!.heartbeat([first], now()),
    wrong: [0, 1, TOKEN, ["gone", "expired"], ["withdrawn"], ["busy", 1_000, [HOLDER]]],
  },
  "heartbeat of many": {
    ask: (engine) => engine.queue!.heartbeat(refs, now()),
    wrong: [0, 1, ["unknown"], [["unknown"], ["unknown"], ["unknown"]], [["unknown"]], QUEUED],
  },
  withdraw: {
    ask: (engine) => engine.queue!.withdraw(first, now()),
    wrong: [0, 1, TOKEN, ["gone", "expired"], QUEUED, ["unknown"], ["released"]],
  },
};

/** An engine whose server gives this answer to every call. */
function answering(reply: unknown, replicas: number | null): RedisEngine {
  const connection: RedisConnection = {
    runScript: async () => reply,
    runScriptAndWait: async () => ({ answer: reply, replicas: replicas ?? 0 }),
    scan: async () => [null, []],
    info: async () => ["maxmemory_policy:noeviction"],
    subscribe: () => ({ ready: Promise.resolve(), isOver: () => false, close: () => {} }),
    close: () => {},
  };
  const wait = replicas === null ? null : { replicas: 1, timeoutMs: 100 };
  return new RedisEngine(connection, { ...REDIS_DEFAULTS, replicas: wait });
}

function assertUnknown(error: unknown): void {
  assert.ok(error instanceof EngineError, `${error}`);
  assert.equal(error.effect, "unknown");
  for (const word of [ID, first.grantId, second.grantId]) assert.ok(!error.message.includes(word));
}

for (const [what, { ask, wrong = [], isRight }] of Object.entries(QUESTIONS)) {
  test(`${what} fails with unknown effect if the answer has another shape`, async () => {
    for (const replicas of [null, 0, 1]) {
      for (const reply of [...NEVER, ...wrong]) {
        if (isRight?.(reply, replicas)) continue;
        const engine = answering(reply, replicas);
        let told: unknown;
        try {
          told = await ask(engine);
        } catch (error) {
          assertUnknown(error);
          continue;
        }
        const shown = `${what}: ${typeof reply === "symbol" ? "symbol" : JSON.stringify(reply, show)}`;
        assert.ok(Array.isArray(told), shown);
        assert.equal(told.length, what.includes("many") ? 2 : 1, shown);
        for (const answer of told as Failed[]) {
          assert.deepEqual([answer.kind, answer.effect], ["failed", "unknown"], shown);
          assertUnknown(answer.error);
        }
      }
    }
  });
}

function show(_: string, value: unknown): unknown {
  if (value === undefined || typeof value === "bigint") return String(value);
  return value instanceof Error ? value.message : value;
}

test("one answer of another shape in a batch fails only its own operation", async () => {
  const engine = answering([["unknown"], null], null);
  const [good, bad] = await engine.queue.heartbeat(refs, now());
  assert.equal(good!.kind, "unknown");
  assert.ok(bad!.kind === "failed" && bad!.effect === "unknown");
  const [released, failed] = await answering([1, "QUEUED"], null).release(releases, now());
  assert.equal(released!.kind, "released");
  assert.ok(failed!.kind === "failed" && failed!.effect === "unknown");
});

test("an answer inside a MULTI causes an error that says so, and that may be retried", async () => {
  for (const [reply, retryable] of [
    ["QUEUED", true],
    [null, false],
  ] as const) {
    await assert.rejects(answering(reply, null).tryAcquire(first, now()), (error: EngineError) => {
      assert.equal(error.retryable, retryable);
      return /MULTI/.test(error.message) === retryable;
    });
  }
});

test("a message of another shape grants nothing, and becomes an event", async () => {
  let say: (message: string) => void = () => {};
  const connection = {
    runScript: async () => QUEUED,
    info: async () => ["maxmemory_policy:noeviction"],
    subscribe: (channels: readonly string[], hear: (channel: string, text: string) => void) => {
      say = (text) => hear(channels[0]!, text);
      return { ready: Promise.resolve(), isOver: () => false, close: () => {} };
    },
  };
  const engine = new RedisEngine(connection as unknown as RedisConnection, REDIS_DEFAULTS);
  const granted: GrantRef[] = [];
  const failures: unknown[] = [];
  const hear = (event: unknown) => failures.push(event);
  engine.queue.onGrant((waiter) => granted.push(waiter));
  await engine.queue.enqueue(first, now());
  channels.failed.subscribe(hear);
  const { grantId } = first;
  const wrong = [
    ...[
      "",
      "QUEUED",
      grantId,
      `${grantId} 0`,
      `${grantId} 0 ${TOKEN} 1`,
      `${grantId} 0 ${TOKEN} 1 3000 1`,
    ],
    ...[`${grantId} 0 x 1 3000`, `${grantId} x ${TOKEN} 1 3000`, `${grantId} 0 ${TOKEN} 1 1.5`],
    ...[
      `${grantId} 0 ${TOKEN} -1 3000`,
      `${grantId} 0 ${TOKEN} 1 `,
      `${grantId}  0 ${TOKEN} 1 3000`,
    ],
  ];
  for (const message of wrong) say(message);
  channels.failed.unsubscribe(hear);
  assert.deepEqual([granted, failures.length], [[], wrong.length]);
  // Number 1 is the enqueue, which is the first heartbeat of this engine.
  say(`${grantId} 1 ${TOKEN} 1 3000`);
  assert.deepEqual(granted, [first]);
});
