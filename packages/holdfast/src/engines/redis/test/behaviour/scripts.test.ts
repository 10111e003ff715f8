// The script can decide the frequent cases in two places: in the fast path, and in its second part,
// which can decide everything. Both must decide alike, for all operations in any order.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startRedis } from "@holdfast/servers";
import fc from "fast-check";
import { Redis } from "ioredis";
import { scriptFor } from "../../protocol/script.js";

const { inFull } = scriptFor(1_000_000, false);
const TEXT = "text" in inFull ? inFull.text : "";
/**
 * Only the fast path calls Redis by `ask`. If that always fails, the second part decides
 * everything.
 */
const SECOND_PART_ONLY = TEXT.replace(
  "ask = redis.pcall",
  "ask = function() return { err = '' } end",
);

const CHANNELS = ["heard", "unheard"] as const;
const NAMES = ["a", "b", "c", "d", "e"] as const;

const EXPIRING_KEYS = ["queue", "waiters", "shared", "fence", "gone", "ends", "tokens"] as const;

type Step = { readonly who: number; readonly words: readonly string[]; readonly channel: string };

let server: Awaited<ReturnType<typeof startRedis>>;
let client: Redis;
let listener: Redis;
let messages: string[] = [];

before(async () => {
  server = await startRedis();
  client = new Redis(server.url);
  listener = new Redis(server.url);
  await listener.subscribe(CHANNELS[0]);
  listener.on("message", (_, message) => messages.push(message));
});

after(async () => {
  client.disconnect();
  listener.disconnect();
  await server.stop();
});

const mode = fc.oneof({ weight: 6, arbitrary: fc.constant("x") }, fc.constantFrom("s0", "s2"));
const delay = fc.oneof({ weight: 6, arbitrary: fc.constant("0") }, fc.constant("60000"));
const tokens = fc.oneof({ weight: 3, arbitrary: fc.constant("1") }, fc.constant("33"));
const ttl = fc.constantFrom("30000", "40000");
const beat = fc.constantFrom("0", "1", "2");
const order = fc.constantFrom("1", "2", "3", "10");
const index = fc.oneof({ weight: 3, arbitrary: fc.constant("0") }, fc.constantFrom("1", "2"));
const leave = fc.oneof({ weight: 3, arbitrary: fc.constant("0") }, fc.constant("1"));
const words = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constant("+"), ttl, beat, tokens) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("?"), ttl, fc.constant("0"), tokens) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("enqueue"), mode, ttl, delay, tokens, beat) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("acquire"), mode, ttl, delay, tokens) },
  { weight: 5, arbitrary: fc.tuple(fc.constant("-")) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("release"), fc.constantFrom("0", "60000")) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("="), ttl, index, order) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("renew"), ttl, index, order, leave) },
  { weight: 2, arbitrary: fc.tuple(fc.constant("heartbeat"), beat) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("withdraw")) },
  { weight: 1, arbitrary: fc.tuple(fc.constant("revoke")) },
);
const step: fc.Arbitrary<Step> = fc.record({
  who: fc.nat(NAMES.length - 1),
  words,
  channel: fc.oneof({ weight: 4, arbitrary: fc.constant("heard") }, fc.constant("unheard")),
});

test("the fast path of the script decides as the second part does", async () => {
  assert.notEqual(SECOND_PART_ONLY, TEXT);
  const turns = { maxLength: 25, minLength: 5 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, turns), async (steps) => {
      assert.deepEqual(await runSteps(TEXT, steps), await runSteps(SECOND_PART_ONLY, steps));
    }),
    { numRuns: 150 },
  );
});

test("a batch gives the same answers as its operations one by one", async () => {
  const turns = { maxLength: 25, minLength: 5 };
  await fc.assert(
    fc.asyncProperty(fc.array(step, turns), async (steps) => {
      // No revocations: they name a token, which is not known before. All waiters have one channel.
      const asked = steps
        .filter(({ words }) => words[0] !== "revoke")
        .map(({ who, words }) => sent(who, words));
      const [together, apart] = [await inOne(asked), await oneByOne(asked)];
      assert.deepEqual(together, apart);
    }),
    { numRuns: 150 },
  );
});

test("a queue that ends and begins again in one call has an expiry", async () => {
  await client.flushdb();
  const enqueue = (who: number) => sent(who, ["enqueue", "x", "30000", "0", "1", "0"]).sent;
  await client.eval(TEXT, 1, "key", CHANNELS[0], ...sent(0, ["+", "30000", "0", "1"]).sent);
  const words = [...enqueue(1), ...sent(0, ["-"]).sent, ...enqueue(2)];
  await client.eval(TEXT, 3, "key", "key", "key", CHANNELS[0], ...words);
  assert.equal((await client.zrange("{key}:queue", "0", "-1")).length, 1);
  await state();
});

type Asked = { readonly args: readonly string[]; readonly sent: readonly string[] };

async function inOne(asked: readonly Asked[]): Promise<unknown> {
  await client.flushdb();
  const keys = asked.map(() => "key");
  const words = asked.flatMap((one) => one.sent);
  const raw = await client.eval(TEXT, keys.length, ...keys, CHANNELS[0], ...words);
  const answers = asked.length === 1 ? [raw] : (raw as unknown[]);
  return [withoutTimes(answers, asked), await state()];
}

async function oneByOne(asked: readonly Asked[]): Promise<unknown> {
  await client.flushdb();
  const answers: unknown[] = [];
  for (const one of asked)
    answers.push(await client.eval(TEXT, 1, "key", CHANNELS[0], ...one.sent));
  return [withoutTimes(answers, asked), await state()];
}

/** The answer without tokens and times. */
function withoutTimes(answers: readonly unknown[], asked: readonly Asked[]): unknown[] {
  return answers.map((answer, i) => {
    const one = plain(answer, asked[i]!.args);
    return one[0] === "granted" ? [one[0], ...one.slice(2)] : one;
  });
}

/** Runs the steps; gives all answers, messages and records, without what depends on the time. */
async function runSteps(text: string, steps: readonly Step[]): Promise<unknown[]> {
  await client.flushdb();
  messages = [];
  const seen: unknown[] = [];
  const ranks = new Map<string, number>();
  const rank = (token: string) => {
    if (!ranks.has(token)) ranks.set(token, ranks.size);
    return `token ${ranks.get(token)}`;
  };
  let last = 0n;
  for (const { who, words, channel } of steps) {
    const name = words[0]!;
    const { args, sent: asked } = sent(who, words, name === "revoke" ? await tokenInUse() : "");
    const raw = await client.eval(text, 1, "key", channel, ...asked);
    if (typeof raw === "string" && isRelease(name)) messages.push(raw);
    const answer = plain(raw, args);
    if (answer[0] === "granted") {
      const token = BigInt(String(answer[1]));
      // A repeated claim gives the same token, a new grant a larger one.
      assert.ok(ranks.has(String(token)) || token > last, `${token} after ${last}`);
      last = token > last ? token : last;
      answer[1] = rank(String(token));
    }
    seen.push(name === "revoke" ? name : args, answer, await state());
  }
  await client.publish(CHANNELS[0], "end");
  while (!messages.includes("end")) await new Promise((go) => setImmediate(go));
  const pushed = messages
    .map((message) =>
      message
        .split(" ")
        .map((word, i) => (i === 2 ? "" : word))
        .join(" "),
    )
    .sort();
  return [...seen, pushed];
}

/** The words of a step, and how they are sent. */
function sent(who: number, words: readonly string[], token = ""): Asked {
  const id = String(who + 1).repeat(32);
  const [name, ...terms] = words;
  const label = `label ${NAMES[who]}`;
  const args = [name!, id, ...terms];
  if (name === "enqueue" || name === "acquire") args.splice(6, 0, label);
  if (name === "revoke") args.splice(1, 1, token, "0", "changes");
  const short: Record<string, string> = {
    "+": `+${id}${terms.join(":")}:${label}`,
    "?": `?${id}${terms.join(":")}:${label}`,
    "=": `=${id}${terms.join(":")}`,
    "-": `-${id}`,
  };
  return { args, sent: name! in short ? [short[name!]!] : args };
}

/** Translates the short answers of the fast path into those of the second part. */
function plain(answer: unknown, args: readonly string[]): unknown[] {
  if (answer === 1 || isRelease(args[0]!)) {
    return typeof answer === "object"
      ? (answer as unknown[])
      : [args[0] === "=" ? "renewed" : "released"];
  }
  if (typeof answer === "string") {
    const [, position, label] = /^q:(\d+):\d+:\d+:\d+:(.*)$/.exec(answer) ?? [];
    if (position !== undefined) return ["queued", Number(position), [["x", label, 0]]];
    return ["granted", answer, Number.parseInt(args[4]!, 10), Number(args[2])];
  }
  const [kind, ...rest] = answer as unknown[];
  if (kind === "queued") return [kind, rest[0], holders(rest[2])];
  if (kind === "busy") return [kind, holders(rest[1])];
  return kind === "renewed" ? [kind] : [kind, ...rest];
}

function isRelease(name: string): boolean {
  return name === "-" || name === "release";
}

function holders(views: unknown): unknown[] {
  return (views as unknown[][]).map(([mode, , label, , revoked]) => [mode, label, revoked]);
}

/** The token of the exclusive holder; without one 1, which is no token. */
async function tokenInUse(): Promise<string> {
  const [, , , , , , index, , token] = (await client.get("key"))?.split(":") ?? [];
  return token === undefined ? "1" : String(BigInt(token) + BigInt(index!));
}

async function state(): Promise<unknown> {
  const kept = await Promise.all(EXPIRING_KEYS.map((kind) => client.pttl(`{key}:${kind}`)));
  assert.ok(!kept.includes(-1), `${EXPIRING_KEYS[kept.indexOf(-1)]} has no expiry`);
  const [holder, queue, waiters, shared, pttl] = await Promise.all([
    client.get("key"),
    client.zrange("{key}:queue", "0", "-1"),
    client.hkeys("{key}:waiters"),
    client.hkeys("{key}:shared"),
    client.pttl("key"),
  ]);
  // State 2 says that somebody may wait. It may say so although nobody does.
  const [kind, form, id, delay, mark, ttl, index, order, , tokens, label] =
    holder?.split(":") ?? [];
  const special = mark === "0" || mark === "2" ? null : mark;
  const life = Math.round(pttl / 10_000);
  return {
    holder: [kind, form, id, delay, special, ttl, order, index, tokens, label],
    life,
    queue,
    // A queue that has ended may leave its stored limit until the key expires.
    waiters: waiters.filter((cluster) => cluster !== "limit").sort(),
    shared: shared.sort(),
  };
}
