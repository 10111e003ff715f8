import { EngineError } from "../../../errors.js";
import type { GrantRow, PeerRow, WaiterRow } from "./rows.js";

type Cell = "text" | "number" | "number or null";
type Shape<Row = Record<string, unknown>> = { readonly [Column in keyof Row]: Cell };

const GRANT: Shape<GrantRow> = {
  resource: "text",
  grant_id: "text",
  mode: "text",
  share_limit: "number or null",
  token: "number",
  tokens: "number",
  ttl_ms: "number",
  lock_delay_ms: "number",
  label: "text",
  peer: "text",
  frame: "text",
  expires_at: "number",
  version: "number",
  claimed: "number",
  revoked: "number",
  token_index: "number",
  last_order: "number",
};

const WAITER: Shape<WaiterRow> = {
  seq: "number",
  resource: "text",
  grant_id: "text",
  mode: "text",
  share_limit: "number or null",
  tokens: "number",
  ttl_ms: "number",
  lock_delay_ms: "number",
  label: "text",
  peer: "text",
};

const PEER: Shape<PeerRow> = {
  id: "text",
  boot: "text",
  pid_namespace: "text",
  pid: "number",
  started: "text",
  bell: "number or null",
  frame: "text",
  beat_at: "number",
  version: "number",
};

const NAME: Shape = { resource: "text" };

/** The columns that each reading statement returns. */
const SHAPES = {
  header: { application: "number", version: "number", tables: "number" },
  counterRead: { next: "number", reserved: "number", boot: "text" },
  forcedOf: { grant_id: "text" },
  grantFind: GRANT,
  grantsOf: GRANT,
  grantOfToken: GRANT,
  grantsClaim: GRANT,
  grantsRevoked: NAME,
  peerFind: PEER,
  peersAll: PEER,
  resourcesAfter: NAME,
  resourcesHeld: NAME,
  sightingFind: { version: "number", seen_at: "number" },
  tokensTake: { next: "number", reserved: "number" },
  tombstoneFind: { frame: "text", until: "number" },
  waiterFind: WAITER,
  waiterHead: WAITER,
  waitersOf: { grant_id: "text", mode: "text", label: "text" },
  waiterPosition: { position: "number" },
  waitersLimit: { share_limit: "number or null" },
} as const;

type ShapeName = keyof typeof SHAPES;
/** The names that are statements of sql/. */
export type ReadStatement = Exclude<ShapeName, "header">;

const COLUMNS = new Map(
  Object.entries(SHAPES).map(([name, shape]) => [name, Object.entries(shape) as [string, Cell][]]),
);

/** Returns the row unchanged if it has the columns of its statement, else throws. */
export function exactRow<T>(name: ShapeName, row: unknown): T {
  if (typeof row !== "object" || row === null) throw unexpectedShape(name);
  for (const [column, cell] of COLUMNS.get(name)!) {
    if (!isCell((row as Record<string, unknown>)[column], cell)) throw unexpectedShape(name);
  }
  return row as T;
}

export function exactRows<T>(name: ReadStatement, rows: unknown): T[] {
  if (!Array.isArray(rows)) throw unexpectedShape(name);
  for (const row of rows) exactRow(name, row);
  return rows as T[];
}

/** How many rows a statement changed. */
export function exactChanges(name: string, result: unknown): number {
  const { changes } = (result ?? {}) as { readonly changes?: unknown };
  if (typeof changes === "bigint") return Number(changes);
  if (typeof changes !== "number") throw unexpectedShape(name);
  return changes;
}

/** The effect is unknown: a binding that gives such an answer may also fail to roll back. */
export function unexpectedShape(name: string): EngineError {
  return new EngineError(`SQLite's answer to ${name} has a shape that this version does not know`, {
    effect: "unknown",
    retryable: false,
  });
}

function isCell(value: unknown, cell: Cell): boolean {
  if (cell === "text") return typeof value === "string";
  return Number.isFinite(value) || (cell === "number or null" && value === null);
}
