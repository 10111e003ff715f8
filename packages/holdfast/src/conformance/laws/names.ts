import assert from "node:assert";
import type { LawGroup } from "../harness.js";
import { law } from "../law.js";
import { listingLaws } from "./listing.js";

const long = (tail: string) => "n".repeat(1024 - tail.length) + tail;

/** Names that some backend confuses with each other. Each line is one such family. */
export const NASTY_NAMES: readonly string[] = [
  ...["invoice", "Invoice", "INVOICE", "ınvoice", "İnvoice"],
  ...["a", "a:", ":a", "a:b", "a:b:c", "a::b", "a.b", "a_b", "a-b", "aXb"],
  ...["a:queue", "a:waiters", "a:holders", "a:fence", "a:token", "a:lock", "a:1", "a.lock"],
  ...["a/b", "a//b", "/a/b", "a/b/", "a\\b", "a/../b", "..", ".", "/", "~"],
  ...["a b", " a", "a ", "a  b", "\ta", "a\n", "a\nb", "a\r\nb", "\n", " "],
  ...["{a}", "{a}b", "a{b}", "{}", "{", "}", "}{", "[a]", "a[b]", "(a)", "<a>"],
  ...[
    "'a'",
    '"a"',
    "`a`",
    "a'b",
    'a"b',
    "a''b",
    "a;b",
    "a--b",
    "a/*b*/",
    "$1",
    "$a",
    "?1",
    "@a",
    ":1",
  ],
  ...[
    "'; DROP TABLE holdfast; --",
    "a' OR '1'='1",
    "NULL",
    "null",
    "undefined",
    "true",
    "0",
    "00",
    "-1",
  ],
  ...["a*", "a?", "*", "?", "a*b", "[!a]", "a|b", "a+b", "a^b", "#a", "a#b", "a&b=c", "a,b", "a=b"],
  ...["%61", "a%", "%", "%%", "a%2Fb", "a%252Fb", "a%20b", "a+b c", "%00"],
  ...["é", "e\u0301", "Å", "\u212B", "A\u030A", "ﬁ", "fi", "ß", "ss", "SS"],
  ...["🔒", "🔒🔒", "锁", "锁:1", "קפל", "ロック", "ﾛｯｸ", "a\u200Bb", "\uFEFFa", "a\u00ADb"],
  ...[long("x"), long("y"), long("X"), "锁".repeat(341), `${"锁".repeat(340)}é`],
  ...["__proto__", "constructor", "toString", "hasOwnProperty"],
];

const LABELS: readonly string[] = [
  ...["", " padded ", "o'brien", 'say "hi"', "a\nb\tc", "%s {0} $1 \\", "锁🔒", "x".repeat(256)],
];

export const names: LawGroup = {
  id: "L9",
  name: "resource names",
  text:
    "A name is taken as it is: up to 1 KiB of UTF-8, without folding, trimming, normalising or " +
    "interpreting. Two names that differ are two resources, and every name is listed as it was given.",
  laws: [
    law("L9.1", "names that differ in any way are different resources", [], async (s) => {
      const [a, b] = await s.clients(2);
      const tokens = new Map<string, bigint>();
      for (const name of NASTY_NAMES) {
        const answer = await a!.try(a!.claim(name, { label: name.slice(0, 200) }));
        assert.equal(answer.kind, "granted", `${JSON.stringify(name)} is free`);
        if (answer.kind === "granted") tokens.set(name, answer.token);
      }
      for (const [name, token] of tokens) {
        const view = await b!.inspect(name);
        const shown = JSON.stringify(name);
        assert.equal(view.resource, name);
        assert.deepEqual(
          view.holders.map((holder) => holder.token),
          [token],
          shown,
        );
        assert.equal(view.holders[0]!.label, name.slice(0, 200), "a label is taken as it is");
        assert.equal(await b!.check(name, token), true, shown);
      }
    }),

    law("L9.2", "a release ends the grant of exactly its name", [], async (s) => {
      const a = await s.client();
      const held = new Map();
      for (const name of NASTY_NAMES) held.set(name, await a.take(name));
      for (const [i, name] of NASTY_NAMES.entries())
        if (i % 2) await a.releaseHeld(held.get(name).claim);
      for (const [i, name] of NASTY_NAMES.entries()) {
        const { length } = (await a.inspect(name)).holders;
        assert.equal(length, i % 2 ? 0 : 1, `holders of ${JSON.stringify(name)}`);
      }
    }),

    law("L9.3", "a waiter waits for exactly its name", ["queue"], async (s) => {
      const a = await s.client();
      for (const [holder, free] of [
        ["case", "Case"],
        ["a", "a:b"],
        ["é", "e\u0301"],
        ["x", "x "],
        ["{y}", "y"],
        ["z/1", "z%2F1"],
      ] as const) {
        const held = await a.take(holder);
        const waiter = await a.wait(holder, { label: holder });
        assert.equal((await a.enqueue(a.claim(free))).kind, "granted", JSON.stringify(free));
        const { waiters } = await a.inspect(holder);
        assert.deepEqual(
          waiters.map((one) => one.label),
          [holder],
        );
        await a.releaseHeld(held.claim);
        await a.untilGranted(waiter);
      }
    }),

    law("L9.4", "labels of holders are shown unchanged", [], async (s) => {
      const a = await s.client();
      for (const label of LABELS) {
        const resource = s.resource();
        await a.take(resource, { label });
        assert.equal((await a.inspect(resource)).holders[0]?.label, label);
      }
    }),

    law("L9.5", "labels of waiters are shown unchanged", ["queue"], async (s) => {
      const a = await s.client();
      for (const label of LABELS) {
        const resource = s.resource();
        const held = await a.take(resource);
        const waiter = await a.wait(resource, { label });
        assert.equal((await a.inspect(resource)).waiters[0]?.label, label);
        await a.releaseHeld(held.claim);
        await a.untilGranted(waiter);
        assert.equal((await a.inspect(resource)).holders[0]?.label, label);
      }
    }),

    ...listingLaws,
  ],
};
