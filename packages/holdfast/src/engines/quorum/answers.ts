import type { Gone } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { explain } from "../redis/failure.js";
import type { Letter, NodeAnswer, NodeHolder } from "./node.js";

type Raw = readonly unknown[];

/** What the script gives, as the quorum reads it. The scripts' headers say the shapes. */
export function readAnswer(raw: unknown): NodeAnswer {
  const [kind, first, second, third, fourth] = raw as Raw;
  switch (kind) {
    case "accepted":
    case "skew":
    case "renewed":
    case "released":
    case "revoked":
    case "certified":
      return { kind };
    case "known":
      return { kind, attempt: Number(first), fence: Number(second), tokens: Number(third) };
    case "busy":
      return { kind, counter: Number(first), holders: holders(second) };
    case "counter":
      return { kind, counter: Number(first) };
    case "gone":
      return { kind, why: String(first) as Gone["why"] };
    case "checked":
      return { kind, live: Number(first) === 1 };
    case "view":
      return { kind, holders: holders(first) };
    case "terms":
      return { kind, terms: String(first) };
    case "uncertified":
      return {
        ...{ kind, runId: String(first), replId: String(second) },
        nonce: String(third) === "" ? null : String(third),
        lapsed: Number(fourth) === 1,
      };
    default: {
      const failure = explain(new Error(String(first)));
      const effect = failure instanceof EngineError ? failure.effect : "unknown";
      return { kind: "failed", effect, error: failure };
    }
  }
}

function holders(raw: unknown): NodeHolder[] {
  return (raw as Raw[]).map(([mode, fence, tokens, label, leftMs, delayMs, ageMs, revoked]) => ({
    mode: String(mode) as Letter,
    fence: Number(fence),
    tokens: Number(tokens),
    label: String(label),
    leftMs: Number(leftMs),
    delayMs: Number(delayMs),
    ageMs: Number(ageMs),
    revoked: Number(revoked) === 1,
  }));
}
