import { checkResource } from "../core/acquiring/resource.js";
import type { Sequence } from "../engine.js";
import { show, UsageError } from "../errors.js";

const SHAPE = /^(exclusive|shared):(0|[1-9][0-9]{0,18}):(.+)$/s;
const MAX_TOKEN = 2n ** 63n - 1n;

/**
 * "mode:token:percent-encoded-name": what a holder sends with a request, for the resource to check.
 */
export function formatSequencer(sequence: Sequence): string {
  return `${sequence.mode}:${sequence.token}:${encodeURIComponent(sequence.resource)}`;
}

export function parseSequencer(text: unknown): Sequence {
  const parts = typeof text === "string" ? SHAPE.exec(text) : null;
  const [, mode, digits, encoded] = parts ?? [];
  const token = BigInt(digits ?? -1);
  const resource = decode(encoded);
  if (mode === undefined || resource === null || token < 0n || token > MAX_TOKEN) {
    throw new UsageError(`a sequencer looks like "exclusive:42:invoice%3A42", got ${show(text)}`);
  }
  checkResource(resource);
  return { mode: mode === "shared" ? "shared" : "exclusive", token, resource };
}

function decode(encoded: string | undefined): string | null {
  if (encoded === undefined) return null;
  try {
    return decodeURIComponent(encoded);
  } catch {
    // decodeURIComponent only throws URIError, which means that the text is no sequencer.
    return null;
  }
}
