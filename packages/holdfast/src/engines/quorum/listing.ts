import { compileGlob } from "../../core/acquiring/resource.js";
import type { ListFilter, ListPage, ResourceView } from "../../engine.js";
import { EngineError } from "../../errors.js";
import { explain } from "../redis/protocol/failure.js";
import { resourceOf } from "../redis/protocol/keys.js";
import type { RedisNode } from "./nodes/redis-node.js";
import { countBits } from "./voting/bits.js";
import type { Survey } from "./voting/polls.js";

interface Cursor {
  readonly node: number;
  readonly scan: string | null;
  readonly names: readonly string[];
  /** Nodes that count and were looked through to their end, as a set of bits. */
  readonly done: number;
}

export interface Catalogue {
  readonly nodes: readonly RedisNode[];
  readonly prefix: string;
  readonly writeQuorum: number;
  /** awaited: nodes whose answer is waited for, a set of bits. */
  survey(resource: string, awaited: number): Promise<Survey>;
  /** Whether the node is there, and in no quarantine. */
  counts(node: number): Promise<boolean>;
}

/**
 * One node after the other, until so many were looked through that no grant can have been missed: one
 * in quarantine may have forgotten some. What several of them have is shown where it is met first.
 */
export async function listPage(
  catalogue: Catalogue,
  { match, cursor, max }: ListFilter,
): Promise<ListPage> {
  const { nodes, prefix, writeQuorum, survey } = catalogue;
  const glob = compileGlob(match);
  const at = cursor === null ? START : (JSON.parse(cursor) as Cursor);
  const page = at.names.length > 0 ? at : await turn(catalogue, at, max);
  const found = page.names.slice(0, max).flatMap((key) => {
    const resource = resourceOf(prefix, key)?.resource;
    return resource !== undefined && glob.test(resource) ? [resource] : [];
  });
  // A node that was looked through knows whether it has shown the name already.
  const surveys = await Promise.all(found.map((resource) => survey(resource, page.done)));
  const views = surveys.flatMap(({ view, found: on }): ResourceView[] => {
    const isShownAlready = (on & page.done) !== 0;
    const isBusy = view.holders.length > 0 || view.closedMs > 0;
    return isBusy && !isShownAlready ? [view] : [];
  });
  const rest = { ...page, names: page.names.slice(max) };
  const isThrough = rest.names.length === 0 && rest.scan === null;
  // It may have been emptied while it was looked through.
  const next = isThrough ? after(rest, await catalogue.counts(rest.node)) : rest;
  const isEnd = next.names.length === 0 && countBits(next.done) > nodes.length - writeQuorum;
  return { views, cursor: isEnd ? null : JSON.stringify(next) };
}

const START: Cursor = { node: 0, scan: null, names: [], done: 0 };

async function turn(
  { nodes, writeQuorum, counts }: Catalogue,
  from: Cursor,
  max: number,
): Promise<Cursor> {
  for (let at = from; ; at = after(at, false)) {
    try {
      const node = nodes[at.node];
      const isBegun = at.scan !== null;
      if (node === undefined || !(isBegun || (await counts(at.node)))) throw tooFewToList();
      const [scan, names] = await node.scan(at.scan, max);
      return { ...at, scan, names };
    } catch (error) {
      // Another node will do as long as enough are left.
      const left = nodes.length - at.node - 1;
      if (countBits(at.done) + left <= nodes.length - writeQuorum) throw explain(error);
    }
  }
}

/** The next node; done where this one counted to its end. */
function after({ node, done }: Cursor, isDone: boolean): Cursor {
  return { node: node + 1, scan: null, names: [], done: isDone ? done | (1 << node) : done };
}

function tooFewToList(): EngineError {
  return new EngineError("so many nodes are away or in quarantine that a list would have gaps", {
    effect: "none",
    retryable: true,
  });
}
