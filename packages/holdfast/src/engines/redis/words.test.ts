import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Asked, answersOf, wordsOf } from "./words.js";

const id = (n: number) => String(n).padStart(32, "0");

const asked: fc.Arbitrary<Asked> = fc.record({
  key: fc.nat(99).map((n) => `key${n}`),
  words: fc.oneof(
    { weight: 4, arbitrary: fc.nat(99).map((n) => ["renew", id(n), "10000"]) },
    fc.nat(99).map((n) => ["renew", id(n), "20000"]),
    fc.nat(99).map((n) => ["renew", `short${n}`, "10000"]),
    fc.nat(99).map((n) => ["heartbeat", id(n), "1"]),
  ),
});

/** As the script reads it: an operation for each answer, and who gets it. */
function carriedOut(keys: readonly string[], args: readonly string[]): unknown {
  // Every third is not plain, and answers with its name.
  const plain = (key: string) => Number(key.slice(3)) % 3 !== 0;
  const answers: unknown[] = [];
  let [k, a] = [0, 1];
  assert.equal(args[0], "here");
  while (k < keys.length) {
    const [name, first, ids] = args.slice(a, a + 3) as [string, string, string];
    a += 3;
    if (name !== "keep") {
      answers.push([name, keys[k], first]);
      k++;
      continue;
    }
    const rest: unknown[] = [];
    for (let j = 0; j < ids.length / 32; j++, k++) {
      const one = ["renew", keys[k], ids.slice(j * 32, j * 32 + 32)];
      if (!plain(keys[k]!)) rest.push(j, one);
    }
    answers.push(rest.length === 0 ? 1 : rest);
  }
  assert.equal(a, args.length);
  return answers.length === 1 ? answers[0] : answers;
}

test("each is answered in its place, whatever it was sent together with", () => {
  fc.assert(
    fc.property(fc.array(asked, { minLength: 1, maxLength: 30 }), (all) => {
      const sent = wordsOf(all, "here", false);
      assert.deepEqual(
        sent.keys,
        all.map(({ key }) => key),
      );
      assert.equal(sent.alone, all.length === 1);
      const answer = answersOf(sent, carriedOut(sent.keys, sent.args));
      const answers = (all.length === 1 ? [answer] : answer) as unknown[];
      assert.equal(answers.length, all.length);
      for (const [i, { key, words }] of all.entries()) {
        const full = [words[0], key, words[1]];
        if (answers[i] === 1) assert.ok(words[0] === "renew" && Number(key.slice(3)) % 3 !== 0);
        else assert.deepEqual(answers[i], full);
      }
    }),
  );
});

test("renewals for one ttl are one operation, and those for another are another", () => {
  const renew = (n: number, ttl: string) => ({ key: `k${n}`, words: ["renew", id(n), ttl] });
  const { keys, args } = wordsOf(
    [renew(1, "5"), renew(2, "5"), renew(3, "6"), renew(4, "6")],
    "here",
    false,
  );
  assert.deepEqual(keys, ["k1", "k2", "k3", "k4"]);
  assert.deepEqual(args, ["here", "keep", "5", id(1) + id(2), "keep", "6", id(3) + id(4)]);
});

test("a renewal alone, and one of another form of id, are sent as they are", () => {
  const odd = { key: "a", words: ["renew", "id", "5"] };
  const one = { key: "b", words: ["renew", id(1), "5"] };
  assert.deepEqual(wordsOf([one], "here", false).args, ["here", ...one.words]);
  assert.deepEqual(wordsOf([odd, one, odd], "here", false).args, [
    "here",
    ...odd.words,
    ...one.words,
    ...odd.words,
  ]);
});
