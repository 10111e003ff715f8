import assert from "node:assert/strict";
import { test } from "node:test";
import { EngineError } from "../../../errors.js";
import { readReply } from "./decode.js";
import type { NodeAnswer, NodeRequest } from "./node.js";

type Verb = NodeRequest["verb"];

const HOLDER = ["x", "1700000000000000", 1, 0, "label", 900, 0, 10, 0];
const LIFE = ["0".repeat(40), "1".repeat(40), "", 0];

/** Every answer of the scripts, as both clients give it. */
const RIGHT: readonly (readonly [verbs: readonly Verb[], answer: readonly unknown[]])[] = [
  [["acquire"], ["accepted"]],
  [["acquire"], ["known", 2, "1700000000000000", 1, 4_000]],
  [["acquire"], ["busy", "1700000000000000", [HOLDER]]],
  [["acquire"], ["counter", "1700000000000000"]],
  [["acquire"], ["skew"]],
  [
    ["acquire", "renew", "release", "revoke"],
    ["gone", "expired"],
  ],
  [["renew"], ["renewed", 5_000]],
  [["release"], ["released"]],
  [["revoke"], ["revoked"]],
  [["check"], ["checked", 1]],
  [["inspect"], ["view", [HOLDER]]],
  [["mark", "certify"], ["certified"]],
  [
    ["acquire", "renew", "check", "inspect", "mark", "certify"],
    ["terms", "members a,b,c"],
  ],
  [
    ["acquire", "renew", "check", "inspect", "mark", "certify"],
    ["uncertified", ...LIFE],
  ],
];
const VERBS = [...new Set(RIGHT.flatMap(([verbs]) => verbs))];
const US = "1700000000000000";

test("each answer of the scripts is accepted for its own verbs and for no other", () => {
  for (const [verbs, answer] of RIGHT) {
    for (const verb of VERBS) {
      const { kind } = one(verb, answer);
      assert.equal(kind, verbs.includes(verb) ? answer[0] : "failed", `${verb}: ${answer[0]}`);
    }
  }
});

test("an answer with a field that is missing, too many or of another kind is a failure", () => {
  for (const [verbs, answer] of RIGHT) {
    for (const wrong of wrongs(answer)) {
      for (const verb of verbs) assertUnknown(one(verb, wrong), JSON.stringify(wrong));
    }
  }
});

test("a reply that is not a list of the right length is a failure of unknown effect", () => {
  const accepted = ["accepted"];
  const replies = [
    ...[null, undefined, "QUEUED", "OK", 1, {}, Buffer.from("accepted"), new Error("no"), []],
    ...[[US], [US, accepted, accepted], [accepted], ["soon", accepted], [null, accepted]],
  ];
  for (const reply of replies) {
    assert.throws(
      () => readReply(reply, ["acquire"]),
      (error) => error instanceof EngineError && error.effect === "unknown",
    );
  }
});

test("a failed operation is a failure, and one that the server refused had no effect", () => {
  const oom = one("acquire", ["error", "OOM command not allowed"]);
  assert.ok(oom.kind === "failed" && oom.effect === "none");
  assertUnknown(one("acquire", ["error", "something else"]), "an unknown error");
  assertUnknown(one("acquire", ["error"]), "an error without a message");
});

test("numbers may come as text", () => {
  assert.deepEqual(one("renew", ["renewed", "-3"]), { kind: "renewed", leftMs: -3 });
  assert.deepEqual(one("check", ["checked", "0"]), { kind: "checked", live: false });
});

function one(verb: Verb, answer: unknown): NodeAnswer {
  return readReply([US, answer], [verb]).answers[0]!;
}

function assertUnknown(answer: NodeAnswer, what: string): void {
  assert.equal(answer.kind, "failed", what);
  assert.equal(answer.kind === "failed" && answer.effect, "unknown", what);
}

function* wrongs(answer: readonly unknown[]): Generator<unknown> {
  yield* [null, "QUEUED", answer[0], Buffer.from(String(answer[0])), [], [...answer, 0]];
  yield [...answer, null];
  if (answer.length > 1) yield answer.slice(0, -1);
  for (const [i, field] of answer.entries()) {
    for (const other of [null, undefined, Buffer.from("1"), {}, [field], 0.5]) {
      yield answer.with(i, other);
    }
    if (!Array.isArray(field)) continue;
    yield answer.with(i, "QUEUED");
    for (const inner of wrongHolders(field[0] as readonly unknown[])) {
      yield answer.with(i, [HOLDER, inner]);
    }
  }
}

function* wrongHolders(holder: readonly unknown[]): Generator<unknown> {
  yield* [null, "x", [], holder.slice(0, -1), [...holder, 0]];
  for (const i of holder.keys()) yield holder.with(i, null);
  yield holder.with(0, "z");
}
