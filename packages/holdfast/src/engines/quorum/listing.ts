import type { ListFilter, ListPage, ResourceView } from "../../engine.js";
import { globToRegExp } from "../../resource.js";
import { explain } from "../redis/failure.js";
import { resourceOf } from "../redis/keys.js";
import { countBits } from "./bits.js";
import type { Survey } from "./polls.js";
import type { RedisNode } from "./redis-node.js";

interface Cursor {
  readonly node: number;
  readonly scan: string | null;
  readonly names: readonly string[];
  /** Nodes that were looked through to their end, as a set of bits. */
  readonly done: number;
}

export interface Catalogue {
  readonly nodes: readonly RedisNode[];
  readonly prefix: string;
  readonly writeQuorum: number;
  survey(resource: string): Promise<Survey>;
}

/**
 * One node after the other, until so many were looked through that no grant can have been missed. What
 * several of them have is shown where it is met first.
 */
export async function listPage(
  { nodes, prefix, writeQuorum, survey }: Catalogue,
  { match, cursor, max }: ListFilter,
): Promise<ListPage> {
  const glob = globToRegExp(match);
  const at = cursor === null ? START : (JSON.parse(cursor) as Cursor);
  const page = at.names.length > 0 ? at : await turn(nodes, writeQuorum, at, max);
  const found = page.names.slice(0, max).flatMap((key) => {
    const resource = resourceOf(prefix, key)?.resource;
    return resource !== undefined && glob.test(resource) ? [resource] : [];
  });
  const surveys = await Promise.all(found.map(survey));
  const views = surveys.flatMap(({ view, found: on }): ResourceView[] => {
    const isShownAlready = (on & page.done) !== 0;
    const isBusy = view.holders.length > 0 || view.closedMs > 0;
    return isBusy && !isShownAlready ? [view] : [];
  });
  const rest = { ...page, names: page.names.slice(max) };
  const next = rest.names.length === 0 && rest.scan === null ? after(rest) : rest;
  const isEnd = next.names.length === 0 && countBits(next.done) > nodes.length - writeQuorum;
  return { views, cursor: isEnd ? null : JSON.stringify(next) };
}

const START: Cursor = { node: 0, scan: null, names: [], done: 0 };

async function turn(
  nodes: readonly RedisNode[],
  writeQuorum: number,
  from: Cursor,
  max: number,
): Promise<Cursor> {
  let at = from;
  for (;;) {
    try {
      const [scan, names] = await nodes[at.node]!.scan(at.scan, max);
      return { ...at, scan, names };
    } catch (error) {
      // Another node will do as long as enough are left.
      const left = nodes.length - at.node - 1;
      if (countBits(at.done) + left <= nodes.length - writeQuorum) throw explain(error);
      at = { ...at, node: at.node + 1, scan: null, names: [] };
    }
  }
}

function after({ node, done }: Cursor): Cursor {
  return { node: node + 1, scan: null, names: [], done: done | (1 << node) };
}
