// Renewals that travel as one operation. Each must get the answer that it would get alone.
import assert from "node:assert/strict";
import type { Claim, RenewRef } from "../../../../engine.js";
import { EngineError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { keyOf } from "../../protocol/keys.js";
import { scriptFor } from "../../protocol/script.js";
import { RULES } from "../support/rights.fixture.js";
import {
  describeWithServer,
  type OpenOptions,
  type RedisTestServer,
} from "../support/test-server.fixture.js";

const CLIENTS: readonly OpenOptions[] = [
  { client: "ioredis" },
  { client: "ioredis", ioredis: { stringNumbers: true } },
  { client: "node-redis", resp: 2 },
  { client: "node-redis", resp: 3 },
];

/** In this order, with plain renewals before, between and after. */
const EXPECTED = {
  plain1: "renewed",
  shared: "renewed",
  delayed: "renewed",
  plain2: "renewed",
  revoked: "gone revoked",
  gone: "gone expired",
  replaced: "gone replaced",
  foreign: "gone replaced",
  list: "failed none",
  waited: "renewed",
  changed: "renewed",
  other: "renewed",
  plain3: "renewed",
} as const;

type Name = keyof typeof EXPECTED;
const NAMES = Object.keys(EXPECTED) as Name[];

/** Makes every state that a renewal can find, and gives the renewals. */
async function makeGrants(redis: RedisTestServer): Promise<RenewRef[]> {
  const engine = redis.engine();
  const refs: RenewRef[] = [];
  const how: Partial<Record<Name, Partial<Claim>>> = {
    shared: { mode: "shared" },
    delayed: { lockDelayMs: 50_000 },
    other: { ttlMs: 200_000 },
  };
  for (const name of NAMES) {
    const request: Claim = { ...claim(name), ttlMs: 100_000, ...how[name] };
    const answer = await engine.tryAcquire(request, now());
    assert.ok(answer.kind === "granted");
    // Renewed for longer than its first ttl.
    refs.push({ ...request, ttlMs: name === "changed" ? 150_000 : request.ttlMs });
    const { token } = answer;
    if (name === "revoked") await engine.revoke({ resource: name, token, force: false }, now());
  }
  await engine.queue!.enqueue(claim("waited"), now());
  const keys = ["gone", "replaced", "foreign", "list"].map((name) => keyOf("holdfast:", name));
  await redis.admin.del(...keys);
  // The same record as the one before it, except for the id.
  await engine.tryAcquire(claim("replaced", { ttlMs: 100_000 }), now());
  await redis.admin.set("holdfast:foreign", "another program");
  await redis.admin.rpush("holdfast:list", "1");
  // All have little time left, so that the test sees which were renewed.
  for (const name of NAMES) await redis.admin.pexpire(`holdfast:${name}`, 70_000);
  return refs;
}

/** The time that each has left, in units so coarse that a busy machine does not change them. */
async function remaining(redis: RedisTestServer): Promise<Record<string, number>> {
  const all: Record<string, number> = {};
  for (const name of NAMES) {
    const leftMs = await redis.admin.pttl(`holdfast:${name}`);
    all[name] = Math.max(0, Math.round(leftMs / 10_000));
  }
  return all;
}

describeWithServer("renewals in one operation", (it) => {
  for (const open of CLIENTS) {
    it(`each renewal has its own answer, whatever the others are (${JSON.stringify(open)})`, async (redis) => {
      const refs = await makeGrants(redis);
      const call = now();
      const answers = await redis.engine(open).renew(refs, call);
      const told = answers.map((answer) => {
        if (answer.kind === "gone") return `gone ${answer.why}`;
        return answer.kind === "failed" ? `failed ${answer.effect}` : answer.kind;
      });
      assert.deepEqual(Object.fromEntries(NAMES.map((name, i) => [name, told[i]])), EXPECTED);
      for (const [i, answer] of answers.entries()) {
        if (answer.kind !== "renewed") continue;
        assert.deepEqual(answer, { ...answer, since: call.startedAt, ttlMs: refs[i]!.ttlMs });
      }
      const broken = answers[NAMES.indexOf("list")]!;
      assert.ok(broken.kind === "failed" && /not a lock/.test(broken.error.message));
      const after = await remaining(redis);
      assert.deepEqual(after, {
        ...Object.fromEntries(NAMES.map((name) => [name, 10])),
        delayed: 15,
        changed: 15,
        other: 20,
        revoked: 7,
        gone: 0,
        replaced: 7,
        foreign: 7,
        list: 7,
      });
    });
  }

  it("the script gives the same answer to a renewal alone and to one of many", async (redis) => {
    const { inFull } = scriptFor(1_000_000, false);
    const text = "text" in inFull ? inFull.text : "";
    const keysOf = (refs: readonly RenewRef[]) =>
      refs.map(({ resource }) => keyOf("holdfast:", resource));
    const alone = [];
    for (const ref of await makeGrants(redis)) {
      const words = ["here", `=${ref.grantId}100000:0:5`];
      alone.push(await redis.admin.eval(text, 1, ...keysOf([ref]), ...words));
    }
    const remainingAlone = await remaining(redis);
    await redis.admin.flushdb();
    const refs = await makeGrants(redis);
    const words = [
      "here",
      "renew-many",
      "100000",
      "0",
      "5",
      refs.map(({ grantId }) => grantId).join(""),
    ];
    const rest = await redis.admin.eval(text, refs.length, ...keysOf(refs), ...words);
    assert.deepEqual(await remaining(redis), remainingAlone);
    const all: unknown[] = NAMES.map(() => 1);
    const together = rest as unknown[];
    for (let i = 0; i < together.length; i += 2) all[Number(together[i])] = together[i + 1];
    assert.deepEqual(all, alone);
  });

  it("ids of another form are renewed one by one", async (redis) => {
    const engine = redis.engine();
    const claims = [claim("a"), { ...claim("b"), grantId: "ab" }, claim("c")];
    for (const one of claims) await engine.tryAcquire(one, now());
    await redis.admin.pexpire("holdfast:b", 1_000);
    const answers = await engine.renew(claims, now());
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ["renewed", "renewed", "renewed"],
    );
    assert.ok((await redis.admin.pttl("holdfast:b")) > 2_000);
  });

  it("a thousand plain renewals take a few calls, and a broken key fails only its own", async (redis) => {
    const engine = redis.engine();
    const claims = Array.from({ length: 1_000 }, (_, i) => claim(`r${i}`));
    for (const one of claims) void engine.tryAcquire(one, now());
    await engine.inspect("r999", now());
    await redis.admin.del("holdfast:r7");
    await redis.admin.rpush("holdfast:r7", "1");
    await redis.admin.config("RESETSTAT");
    const answers = await engine.renew(claims, now());
    const scripts = await redis.calls("evalsha");
    assert.ok(scripts >= 1 && scripts <= 4, `${scripts} scripts`);
    assert.deepEqual([await redis.calls("set"), await redis.calls("pexpire")], [999, 0]);
    const others = answers.flatMap(({ kind }, i) => (kind === "renewed" ? [] : [`${i} ${kind}`]));
    assert.deepEqual(others, ["7 failed"]);
  });

  it("a key without access rights fails its own renewal, and no other", async (redis) => {
    const wide = redis.engine();
    const claims = ["mine:1", "theirs:1", "mine:2", "mine:3"].map((name) => claim(name));
    for (const one of claims) await wide.tryAcquire(one, now());
    const keys = ["~holdfast:mine*", "~{holdfast:mine*"];
    const rules = [...RULES.filter((rule) => !rule.startsWith("~")), ...keys];
    await redis.admin.call("ACL", "SETUSER", "narrow", "on", ">secret", ...rules);
    const narrow = redis.engine({ user: ["narrow", "secret"] });
    const answers = await narrow.renew(claims, now());
    assert.deepEqual(
      answers.map(({ kind }) => kind),
      ["renewed", "failed", "renewed", "renewed"],
    );
    const [, refused] = answers;
    assert.ok(refused?.kind === "failed" && refused.error instanceof EngineError);
    assert.equal(refused.effect, "none");
  });

  it("without a replica nothing counts as renewed, and a grant that is gone is reported gone", async (redis) => {
    const refs = await makeGrants(redis);
    const engine = redis.engine({ replicas: { wait: 1, timeoutMs: 20 } });
    const answers = await engine.renew(refs, now());
    const told = answers.map((answer) => {
      if (answer.kind === "gone") return `gone ${answer.why}`;
      return answer.kind === "failed" ? `failed ${answer.effect}` : answer.kind;
    });
    const expected = Object.values(EXPECTED).map((kind) =>
      kind === "renewed" ? "failed unknown" : kind,
    );
    assert.deepEqual(told, expected);
  });
});
