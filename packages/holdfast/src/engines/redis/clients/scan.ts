import { isListOf, listIn, textIn, unexpectedAnswer } from "../protocol/shape.js";

/** Sends SCAN with these arguments to one node. */
type Scanner = (args: readonly string[]) => Promise<unknown>;

/**
 * Scans one node after the other. Our cursor is the node's number and the node's own cursor. If
 * nodes join or leave during a scan, some keys may be missed or found twice.
 */
export async function scanNodes(
  nodes: readonly Scanner[],
  cursor: string | null,
  glob: string,
  max: number,
): Promise<[string | null, string[]]> {
  const [at = "0", from = "0"] = (cursor ?? "0 0").split(" ");
  const number = Number(at);
  const node = nodes[number];
  if (node === undefined) return [null, []];
  const page = await node([from, "MATCH", glob, "COUNT", String(max)]);
  if (!isListOf(page, 2)) throw unexpectedAnswer(page);
  const next = String(page[0]);
  if (!/^\d+$/.test(next)) throw unexpectedAnswer(page[0]);
  const keys = listIn(page[1]).map(textIn);
  if (next !== "0") return [`${at} ${next}`, keys];
  return [number + 1 < nodes.length ? `${number + 1} 0` : null, keys];
}
