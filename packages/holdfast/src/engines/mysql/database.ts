import { randomBytes } from "node:crypto";
import type { Beat, Database, Hearing, Operation, Raw, Renewal } from "../../sql/database.js";
import { type Failure, failureOf } from "./failure.js";
import type { MysqlHold, MysqlTerms } from "./options.js";
import { checkSchema } from "./schema.js";
import type { Sessions } from "./sessions.js";

const WAIT_S = 1;

/** Calls the routines that createSchema() made. */
export class MysqlDatabase implements Database {
  readonly #sessions: Sessions;
  readonly #prefix: string;
  readonly #hold: MysqlHold;
  readonly #idleMs: number;
  readonly #owner = randomBytes(8).toString("hex");
  readonly #end: () => unknown;
  #checked: Promise<void> | null = null;

  constructor(sessions: Sessions, { prefix, hold, idleMs }: MysqlTerms, end: () => unknown) {
    this.#sessions = sessions;
    this.#prefix = prefix;
    this.#hold = hold;
    this.#idleMs = idleMs;
    this.#end = end;
  }

  async run(
    operations: readonly Operation[],
    waitMs: number,
    limitMs: number,
  ): Promise<readonly Raw[]> {
    const ops = operations.map((operation) => ({
      ...operation,
      name: hex(operation.name),
      owner: this.#owner,
      label: hex(String(operation.label ?? "")),
      shared: Number(operation.shared ?? 0),
      force: Number(operation.force ?? 0),
    }));
    const waitS = Math.max(WAIT_S, Math.floor(waitMs / 1_000));
    const [answers] = await this.#call("run", [json(ops), waitS, this.#idleMs], limitMs);
    return (parse(answers) as Raw[]).map(readable);
  }

  async heartbeat(
    beats: readonly Beat[],
    _hearing: Hearing,
    _waitMs: number,
    limitMs: number,
  ): Promise<readonly Raw[]> {
    const refs = beats.map(({ name, id }) => ({ name: hex(name), id }));
    const answers = await this.#call("heartbeat", [json(refs), batch(), WAIT_S], limitMs);
    return answers.map((answer) => readable(parse(answer) as Raw));
  }

  async renew(renewals: readonly Renewal[], limitMs: number): Promise<readonly Raw[]> {
    const refs = renewals.map(({ name, id, ttlMs }) => ({ name: hex(name), id, ttl: ttlMs }));
    const answers = await this.#call("renew", [json(refs), batch(), WAIT_S], limitMs);
    return answers.map((answer) => parse(answer) as Raw);
  }

  async check(name: string, shared: boolean, token: bigint, limitMs: number): Promise<boolean> {
    const values = [literal(hex(name)), Number(shared), token];
    return Number((await this.#call("check_token", values, limitMs))[0]) === 1;
  }

  async look(name: string, limitMs: number): Promise<Raw> {
    const [answer] = await this.#call("look", [literal(hex(name))], limitMs);
    return readableView(parse(answer) as Raw);
  }

  async page(
    after: string,
    most: number,
    limitMs: number,
  ): Promise<readonly (readonly [string, Raw])[]> {
    const answers = await this.#call("page", [literal(hex(after)), most], limitMs);
    return answers.map((answer) => {
      const [name, view] = parse(answer) as [string, Raw];
      return [text(name), readableView(view)];
    });
  }

  failure(error: unknown): Failure {
    return failureOf(error);
  }

  /** Looked at once; a schema that is missing may be there the next time. */
  ready(limitMs: number): Promise<void> {
    this.#checked ??= checkSchema(
      (statement) => this.#sessions.call(statement, limitMs),
      this.#prefix,
      this.#hold,
    ).catch((error: unknown) => {
      this.#checked = null;
      throw failureOf(error).error;
    });
    return this.#checked;
  }

  async close(): Promise<void> {
    await this.#end();
  }

  #call(routine: string, values: readonly (string | number | bigint)[], limitMs: number) {
    return this.#sessions.call(`CALL ${this.#prefix}${routine}(${values.join(", ")})`, limitMs);
  }
}

/**
 * Everything travels as hexadecimal digits: no character set, collation or escape mode of a session
 * can change what a name is, and nothing needs quoting.
 */
function hex(value: string): string {
  return Buffer.from(value).toString("hex");
}

function text(digits: unknown): string {
  return Buffer.from(String(digits), "hex").toString();
}

function literal(digits: string): string {
  return `X'${digits}'`;
}

function json(value: unknown): string {
  return literal(hex(JSON.stringify(value)));
}

function parse(answer: unknown): unknown {
  return JSON.parse(String(answer));
}

/** A number that no other batch has, within what JSON and BIGINT agree on. */
function batch(): number {
  return randomBytes(6).readUIntBE(0, 6) + 1;
}

function readable(answer: Raw): Raw {
  const at = answer[0] === "queued" ? 3 : answer[0] === "busy" ? 2 : -1;
  return at < 0 ? answer : answer.map((part, i) => (i === at ? labelled(part, 2) : part));
}

function readableView([holders, waiters, closedMs]: Raw): Raw {
  return [labelled(holders, 2), labelled(waiters, 1), closedMs];
}

function labelled(rows: unknown, at: number): Raw[] {
  return (rows as Raw[]).map((row) => row.map((part, i) => (i === at ? text(part) : part)));
}
