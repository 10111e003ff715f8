import type { Gone } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import { explain } from "../../redis/protocol/failure.js";
import {
  isListOf,
  isYes,
  listIn,
  numberIn,
  textIn,
  unexpectedAnswer,
} from "../../redis/protocol/shape.js";
import type { ModeCode, NodeAnswer, NodeHolder, NodeRequest } from "./node.js";

type Verb = NodeRequest["verb"];
type Kind = NodeAnswer["kind"];

/** The answers of each operation. Those that need a certificate may also answer what it says. */
const ANSWERS: Record<Verb, readonly Kind[]> = {
  acquire: ["accepted", "known", "busy", "counter", "skew", "gone", "uncertified", "terms"],
  renew: ["renewed", "gone", "uncertified", "terms"],
  release: ["released", "gone"],
  check: ["checked", "uncertified", "terms"],
  revoke: ["revoked", "gone"],
  inspect: ["view", "uncertified", "terms"],
  mark: ["certified", "uncertified", "terms"],
  certify: ["certified", "uncertified", "terms"],
};

const REASONS: readonly Gone["why"][] = ["expired", "replaced", "revoked", "unknown"];

export interface Reply {
  /** The node's time in microseconds. */
  readonly us: number;
  readonly answers: readonly NodeAnswer[];
}

/**
 * Reads what the script returned; the scripts' headers define the shapes. A reply of another shape is a
 * failure of this node with an unknown effect.
 */
export function readReply(raw: unknown, verbs: readonly Verb[]): Reply {
  if (!isListOf(raw, verbs.length + 1)) throw unexpectedAnswer(raw);
  const us = number(raw[0]);
  return { us, answers: verbs.map((verb, i) => readAnswer(verb, raw[i + 1])) };
}

function readAnswer(verb: Verb, raw: unknown): NodeAnswer {
  try {
    return exact(verb, raw);
  } catch (reason) {
    const error = explain(reason);
    const effect = error instanceof EngineError ? error.effect : "unknown";
    return { kind: "failed", effect, error };
  }
}

function exact(verb: Verb, raw: unknown): NodeAnswer {
  const [name, ...fields] = listIn(raw);
  if (name === "error" && fields.length === 1) throw new Error(textIn(fields[0]));
  const kind = oneOf(ANSWERS[verb], name);
  const { length } = fields;
  const [first, second, third, fourth] = fields;
  if (length !== LENGTHS[kind]) throw unexpectedAnswer(raw);
  switch (kind) {
    case "accepted":
    case "skew":
    case "released":
    case "revoked":
    case "certified":
      return { kind };
    case "renewed":
      return { kind, leftMs: number(first) };
    case "known": {
      const [attempt, fence, tokens, leftMs] = [first, second, third, fourth].map(number);
      return { kind, attempt: attempt!, fence: fence!, tokens: tokens!, leftMs: leftMs! };
    }
    case "busy":
      return { kind, counter: number(first), holders: listIn(second).map(holder) };
    case "counter":
      return { kind, counter: number(first) };
    case "gone":
      return { kind, why: oneOf(REASONS, first) };
    case "checked":
      return { kind, live: isYes(first) };
    case "view":
      return { kind, holders: listIn(first).map(holder) };
    case "terms":
      return { kind, terms: textIn(first) };
    case "uncertified": {
      const nonce = textIn(third);
      const life = { runId: textIn(first), replId: textIn(second) };
      return { kind, ...life, nonce: nonce === "" ? null : nonce, lapsed: isYes(fourth) };
    }
    case "failed":
      throw unexpectedAnswer(raw);
  }
}

const LENGTHS: Record<Kind, number> = {
  ...{ accepted: 0, skew: 0, released: 0, revoked: 0, certified: 0, failed: 0 },
  ...{ renewed: 1, known: 4, busy: 2, counter: 1, gone: 1, checked: 1, view: 1, terms: 1 },
  uncertified: 4,
};
const HOLDER_LENGTH = 9;

function holder(raw: unknown): NodeHolder {
  if (!isListOf(raw, HOLDER_LENGTH)) throw unexpectedAnswer(raw);
  const [mode, fence, tokens, index, label, leftMs, delayMs, ageMs, revoked] = raw;
  return {
    ...{ mode: oneOf<ModeCode>(["x", "s"], mode), fence: number(fence), tokens: number(tokens) },
    ...{ index: number(index), label: textIn(label), leftMs: number(leftMs) },
    ...{ delayMs: number(delayMs), ageMs: number(ageMs), revoked: isYes(revoked) },
  };
}

function number(raw: unknown): number {
  return numberIn(raw, Number.MIN_SAFE_INTEGER);
}

function oneOf<T extends string>(known: readonly T[], raw: unknown): T {
  const found = known.find((one) => one === raw);
  if (found !== undefined) return found;
  throw unexpectedAnswer(raw);
}
