import { randomBytes } from "node:crypto";
import { sleep, systemClock } from "../../../core/runtime/clock.js";
import type {
  Database,
  Heartbeat,
  RawAnswer,
  Renewal,
  SqlOperation,
  Wakeup,
} from "../../../engine-kit/sql/database.js";
import { SchemaCheck } from "../../../engine-kit/sql/schema-check.js";
import {
  count,
  list,
  lists,
  json as parse,
  text as read,
  unreadable,
} from "../../../engine-kit/sql/shape.js";
import type { MysqlHold, MysqlTerms } from "../options.js";
import { checkSchema } from "../schema.js";
import { type Failure, failureOf } from "./failure.js";
import type { Sessions } from "./sessions.js";

const WAIT_S = 1;
// Pauses between tries for a locked grant. One that another call has locked is free within the
// first pauses; one that a user's transaction has locked is not, and must not hold up the other
// renewals of the batch.
const LOCKED_PAUSES_MS = [5, 15, 30, 60, 120];

/** Calls the routines that init() created. */
export class MysqlDatabase implements Database {
  readonly #sessions: Sessions;
  readonly #prefix: string;
  readonly #hold: MysqlHold;
  readonly #idleMs: number;
  readonly #owner = randomBytes(8).toString("hex");
  readonly #end: () => unknown;
  readonly #check = new SchemaCheck(async (limitMs) => {
    const ask = (statement: string) => this.#sessions.call(statement, limitMs);
    await checkSchema(ask, this.#prefix, this.#hold).catch((error: unknown) => {
      throw failureOf(error).error;
    });
  });

  constructor(sessions: Sessions, { prefix, hold, idleMs }: MysqlTerms, end: () => unknown) {
    this.#sessions = sessions;
    this.#prefix = prefix;
    this.#hold = hold;
    this.#idleMs = idleMs;
    this.#end = end;
  }

  async run(
    operations: readonly SqlOperation[],
    waitMs: number,
    limitMs: number,
  ): Promise<readonly RawAnswer[]> {
    const ops = operations.map((operation) => ({
      ...operation,
      name: hex(operation.name),
      owner: this.#owner,
      label: hex(String(operation.label ?? "")),
      shared: Number(operation.shared ?? 0),
      force: Number(operation.force ?? 0),
    }));
    const waitS = Math.max(WAIT_S, Math.floor(waitMs / 1_000));
    const answers = await this.#call("run", [json(ops), waitS, this.#idleMs], limitMs);
    return lists(parse(answers)).map(readable);
  }

  async heartbeat(
    heartbeats: readonly Heartbeat[],
    _wakeup: Wakeup,
    _waitMs: number,
    limitMs: number,
  ): Promise<readonly RawAnswer[]> {
    const refs = heartbeats.map(({ name, id }) => ({ name: hex(name), id }));
    const answers = await this.#call("heartbeat", [json(refs), batch(), WAIT_S], limitMs);
    return inOrder(answers).map(readable);
  }

  async renew(
    renewals: readonly Renewal[],
    order: number,
    limitMs: number,
  ): Promise<readonly RawAnswer[]> {
    const refs = renewals.map(({ name, id, ttlMs, index, leave }) => {
      return { name: hex(name), id, ttl: ttlMs, index, leave: Number(leave) };
    });
    const ask = async (some: readonly object[]) =>
      inOrder(await this.#call("renew", [json(some), order, batch(), WAIT_S], limitMs));
    const answers = await ask(refs);
    for (const pauseMs of LOCKED_PAUSES_MS) {
      const locked = [...answers.keys()].filter((i) => answers[i]![0] === "locked");
      if (locked.length === 0) break;
      await sleep(systemClock, pauseMs, undefined, false);
      // What was renewed stays renewed, whatever happens to the others.
      const again = await ask(locked.map((i) => refs[i]!)).catch(() => null);
      for (const [at, i] of locked.entries()) answers[i] = again?.[at] ?? answers[i]!;
    }
    return answers;
  }

  async check(name: string, shared: boolean, token: bigint, limitMs: number): Promise<boolean> {
    const values = [literal(hex(name)), Number(shared), token];
    // A number, or text if the client is configured to return text.
    const answer = String(await this.#call("check_token", values, limitMs));
    if (answer !== "1" && answer !== "0") throw unreadable("a check says yes or no");
    return answer === "1";
  }

  async look(name: string, limitMs: number): Promise<RawAnswer> {
    return readableView(parse(await this.#call("look", [literal(hex(name))], limitMs)));
  }

  async page(after: string, prefix: string, most: number, limitMs: number): Promise<RawAnswer> {
    const values = [literal(hex(after)), literal(hex(prefix)), most];
    const answers = await this.#call("page", values, limitMs);
    const [kind, entries] = list(parse(answers), 2);
    const readable = lists(entries).map((entry) => {
      const [name, view] = list(entry, 2);
      return [text(name), readableView(view)];
    });
    return [kind, readable];
  }

  failure(error: unknown): Failure {
    return failureOf(error);
  }

  ready(limitMs: number): Promise<void> {
    return this.#check.passed(limitMs);
  }

  async close(): Promise<void> {
    await this.#end();
  }

  #call(routine: string, values: readonly (string | number | bigint)[], limitMs: number) {
    return this.#sessions.call(`CALL ${this.#prefix}${routine}(${values.join(", ")})`, limitMs);
  }
}

/**
 * Everything travels as hexadecimal digits: no character set, collation or escape mode of a
 * session can change a name, and nothing needs quoting.
 */
function hex(value: string): string {
  return Buffer.from(value).toString("hex");
}

function text(digits: unknown): string {
  return Buffer.from(read(digits), "hex").toString();
}

function literal(digits: string): string {
  return `X'${digits}'`;
}

function json(value: unknown): string {
  return literal(hex(JSON.stringify(value)));
}

/** Sorts numbered answers here: sorting them at the server would take a table on its disk. */
function inOrder(answers: unknown): RawAnswer[] {
  const numbered = lists(parse(answers)).map((entry) => {
    const [n, answer] = list(entry, 2);
    return [count(n), list(answer)] as const;
  });
  return numbered
    .sort(([a], [b]) => a - b)
    .map(([n, answer], i) => {
      if (n !== i + 1) throw unreadable("an answer is missing");
      return answer;
    });
}

/** A number that no other batch has, within the range that both JSON and BIGINT support. */
function batch(): number {
  return randomBytes(6).readUIntBE(0, 6) + 1;
}

function readable(answer: RawAnswer): RawAnswer {
  const at = answer[0] === "queued" ? 3 : answer[0] === "busy" ? 2 : -1;
  return at < 0 ? answer : answer.map((part, i) => (i === at ? labelled(part, 2) : part));
}

function readableView(view: unknown): RawAnswer {
  const [holders, waiters, closedMs] = list(view, 3);
  return [labelled(holders, 2), labelled(waiters, 1), closedMs];
}

function labelled(rows: unknown, at: number): RawAnswer[] {
  return lists(rows).map((row) => row.map((part, i) => (i === at ? text(part) : part)));
}
