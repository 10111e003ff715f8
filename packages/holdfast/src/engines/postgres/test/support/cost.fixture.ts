// Counts what the server reads for a statement, including all that its routines read.
import type pg from "pg";
import { mintGrantId } from "../../../../core/holding/grant-id.js";

export type Statement = [text: string, values: unknown[]];

export const SWEEP: Statement = ["SELECT holdfast.sweep(60000)", []];

const CLAIM = { shared: false, limit: 0, tokens: 1, ttl: 10_000, delay: 0, label: "", pace: 1_000 };
const SAMPLES = 9;

const SCANS = "SELECT relname AS name, seq_scan::int AS scans FROM pg_stat_xact_user_tables";

/** The blocks of tables and indexes that one statement touches. */
export async function blocksOf(client: pg.Client, [text, values]: Statement): Promise<number> {
  const explain = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`;
  const { rows } = await client.query(explain, values);
  const { Plan: plan } = rows[0]["QUERY PLAN"][0];
  return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"];
}

/** The median of a few, because some operations sweep, and the first of a session makes plans. */
export async function blocksOfCycle(
  client: pg.Client,
  next: () => [Statement, Statement],
): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < SAMPLES; i++) {
    const [claim, release] = next();
    samples.push((await blocksOf(client, claim)) + (await blocksOf(client, release)));
  }
  return samples.sort((a, b) => a - b)[(SAMPLES - 1) / 2]!;
}

/** The tables that these statements scan sequentially, and how often. */
export async function scansOf(
  client: pg.Client,
  statements: readonly Statement[],
): Promise<Record<string, number>> {
  const scans: Record<string, number> = {};
  const add = async (sign: number) => {
    for (const { name, scans: n } of (await client.query(SCANS)).rows) {
      scans[name] = (scans[name] ?? 0) + sign * n;
    }
  };
  for (const statement of statements) {
    await client.query("BEGIN");
    await add(-1);
    await client.query(...statement);
    await add(1);
    await client.query("COMMIT");
  }
  return Object.fromEntries(Object.entries(scans).filter(([, n]) => n > 0));
}

/** A claim of a free resource, and its release. */
export function cycle(name: string): [Statement, Statement] {
  const id = mintGrantId();
  return [run("acquire", name, id), handOver(name, id)];
}

/** The same with a session lock of the session with this pid. */
export function advisoryCycle(name: string, pid: number): [Statement, Statement] {
  const id = mintGrantId();
  const run = (verb: string): Statement => {
    const ops = [{ verb, name, key: name, id, tombstone: 0, changes: "changes", ...CLAIM }];
    const values = [JSON.stringify(ops), pid];
    return ["SELECT holdfast.advisory_run($1::jsonb, 60000, 1, $2)", values];
  };
  return [run("acquire"), run("release")];
}

/**
 * One call of each routine that is called from outside, with two waiters queued behind a holder.
 */
export function everything(name: string): Statement[] {
  const [holder, next, last] = [mintGrantId(), mintGrantId(), mintGrantId()];
  const beat: Statement = [
    "SELECT holdfast.heartbeat($1, $2, '{1}', '', 50, 100)",
    [[name], [next]],
  ];
  return [
    run("acquire", name, holder),
    run("enqueue", name, next),
    run("enqueue", name, last),
    beat,
    ["SELECT holdfast.renew($1, $2, '{10000}', '{0}', '{f}', 1, 250)", [[name], [holder]]],
    ["SELECT holdfast.look($1)", [name]],
    ["SELECT holdfast.check_token($1, false, 1)", [name]],
    ["SELECT holdfast.fence($1, false, 1)", [name]],
    ["SELECT holdfast.page('', '', 10)", []],
    handOver(name, holder),
    beat,
    run("withdraw", name, last),
    run("release", name, next),
    ["SELECT holdfast.claim_here($1, 100)", [name]],
  ];
}

/**
 * Creates resources with a grant that lives for a day, nine waiters for each tenth of them, and as
 * many tombstones.
 */
export async function plant(client: pg.Client | pg.Pool, count: number): Promise<void> {
  const all = `generate_series(1, ${count}) i`;
  await client.query(`
    INSERT INTO holdfast.resources (name) SELECT 'planted-' || i FROM ${all};
    INSERT INTO holdfast.grants (grant_id, resource, shared, limit_to, token, tokens, ttl_ms, delay_ms,
        expires_at, label)
      SELECT gen_random_uuid(), 'planted-' || i, false, 0, nextval('holdfast.tokens'), 1, 1000, 0,
        now() + interval '1 day', '' FROM ${all};
    INSERT INTO holdfast.waiters (grant_id, resource, shared, limit_to, tokens, ttl_ms, delay_ms,
        heard_at, channel, label)
      SELECT gen_random_uuid(), 'planted-' || 1 + i / 10, false, 0, 1, 1000, 0,
        now() + interval '1 day', '', '' FROM ${all};
    INSERT INTO holdfast.tombstones
      SELECT gen_random_uuid(), now() + interval '1 day' FROM ${all}`);
}

function run(verb: string, name: string, id: string): Statement {
  const op = { verb, name, id, channel: "", tombstone: 0, ...CLAIM };
  return ["SELECT holdfast.run_one($1::jsonb, 100, 60000)", [JSON.stringify(op)]];
}

function handOver(name: string, id: string): Statement {
  return ["SELECT holdfast.hand_over($1, $2, 100, 60000)", [name, id]];
}
