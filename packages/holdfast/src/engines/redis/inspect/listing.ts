import { compileGlob } from "../../../core/acquiring/resource.js";
import type { ListFilter, ListPage, ResourceView } from "../../../engine.js";
import { EngineError } from "../../../errors.js";
import type { RedisConnection } from "../clients/connection.js";
import { explain, isWrongType } from "../protocol/failure.js";
import { resourceOf } from "../protocol/keys.js";

/** SCAN gives more or fewer keys than asked for. Our cursor carries those that are too many. */
interface Cursor {
  readonly scan: string | null;
  readonly names: string[];
}

/** The next page of resources that are held, waited for, or closed by a lock-delay. */
export async function listPage(
  connection: RedisConnection,
  prefix: string,
  { match, cursor, max }: ListFilter,
  inspect: (resource: string) => Promise<ResourceView>,
): Promise<ListPage> {
  const glob = compileGlob(match);
  let { scan, names } = readCursor(cursor);
  if (names.length === 0) [scan, names] = await scanKeys(connection, prefix, scan, max);
  const found = names.slice(0, max).flatMap((key) => {
    const at = resourceOf(prefix, key);
    return at !== null && glob.test(at.resource) ? [at] : [];
  });
  const views = await Promise.all(found.map(({ resource }) => viewIfLock(resource, inspect)));
  return {
    // A resource may have a holder key and a queue key. It is shown once, where SCAN gives the
    // holder key.
    views: views.filter((view, i): view is ResourceView => {
      if (view === null) return false;
      const busy = view.holders.length > 0 || view.closedMs > 0;
      return found[i]!.first ? busy : !busy && view.waiters.length > 0;
    }),
    cursor: writeCursor({ scan, names: names.slice(max) }),
  };
}

/** Other programs may have keys under the prefix. Those that are no locks are left out. */
async function viewIfLock(
  resource: string,
  inspect: (resource: string) => Promise<ResourceView>,
): Promise<ResourceView | null> {
  try {
    return await inspect(resource);
  } catch (error) {
    if (error instanceof EngineError && isWrongType(error)) return null;
    throw error;
  }
}

async function scanKeys(
  connection: RedisConnection,
  prefix: string,
  cursor: string | null,
  max: number,
): Promise<[string | null, string[]]> {
  const plain = prefix.replace(/[\\*?[\]]/g, "\\$&");
  try {
    return await connection.scan(cursor, `*${plain}*`, max);
  } catch (error) {
    throw explain(error);
  }
}

function readCursor(cursor: string | null): Cursor {
  return cursor === null ? { scan: null, names: [] } : (JSON.parse(cursor) as Cursor);
}

function writeCursor(cursor: Cursor): string | null {
  return cursor.scan === null && cursor.names.length === 0 ? null : JSON.stringify(cursor);
}
