import { randomBytes } from "node:crypto";
import { EngineError } from "../../../errors.js";
import type { ResourceNodes } from "../claims/resource-node.js";
import { refusal } from "../failure.js";
import { tokenOf } from "../record.js";
import type { LeaderTime } from "../session/leader-time.js";
import type { Sessions } from "../session/sessions.js";
import { CODES } from "../wire/codes.js";
import { failedPart, multi } from "../wire/multi.js";
import {
  type AclKind,
  check,
  create,
  getData,
  type Operation,
  remove,
  setData,
  sync,
} from "../wire/operations.js";
import type { Session } from "../wire/session.js";
import { emptyLedger, isEmpty, type Ledger, readLedger, writeLedger } from "./record.js";

const MARK_BYTES = 16;

/** Which state of which record was read. */
export interface Edition {
  readonly mark: string;
  readonly version: number;
}

export interface Page {
  /** Null for a node that holds something else. */
  readonly ledger: Ledger | null;
  /** Null where there is no record. */
  readonly edition: Edition | null;
  /** For the one grant that may be written on top of this page. */
  readonly token: bigint;
  /** By the leader's clock; null where there is no record. */
  readonly written: LeaderTime | null;
}

/**
 * Reads and writes records, each a node with one child, its mark. ZooKeeper counts the versions of a
 * node from 0 again when the node was deleted and made anew, so a request that arrives late would fit a
 * record that it was not meant for. The name of a mark is random and never used again. A record and its
 * mark are made together and deleted together, and every write asks for both mark and version.
 */
export class Records {
  readonly #sessions: Sessions;
  readonly #resourceNodes: ResourceNodes;
  readonly #acl: AclKind;

  constructor(sessions: Sessions, resourceNodes: ResourceNodes, acl: AclKind) {
    this.#sessions = sessions;
    this.#resourceNodes = resourceNodes;
    this.#acl = acl;
  }

  async read(path: string, until: number): Promise<Page> {
    const [synced, answer] = await this.#sessions.on(
      () => this.#sessions.any(),
      (session) => Promise.all([session.ask(sync(path), until), session.ask(getData(path), until)]),
    );
    if (synced.err !== CODES.ok) throw refusal(synced.err);
    if (answer.value === null) {
      if (answer.err !== CODES.noNode) throw refusal(answer.err);
      return { ledger: emptyLedger(), edition: null, token: 0n, written: null };
    }
    const { data, stat } = answer.value;
    const known = readLedger(data);
    if (known === null) return { ledger: null, edition: null, token: 0n, written: null };
    const { mark, ledger } = known;
    const written = { atMs: stat.mtime, zxid: stat.mzxid };
    // From the transaction that wrote what was read: nobody else can write on top of the same page.
    const token = tokenOf(stat.mzxid);
    return { ledger, edition: { mark, version: stat.version }, token, written };
  }

  /** An empty one, unless there is one already. A token needs a page that can be read. */
  async make(path: string, until: number): Promise<void> {
    // Anew for each request: one that arrives late must not bring back a mark that was in use.
    const mark = randomBytes(MARK_BYTES).toString("hex");
    const record = create(path, writeLedger(mark, emptyLedger()), "persistent", this.#acl);
    const child = create(markOf(path, mark), Buffer.alloc(0), "persistent", this.#acl);
    const session = this.#sessions.any();
    const failed = await ask(session, [record, child], until);
    if (failed?.err === CODES.noNode) await this.#resourceNodes.makeParents(session, path, until);
    else if (failed !== null && failed.err !== CODES.nodeExists) throw refusal(failed.err);
  }

  /** False if anybody wrote since the page was read. A record that nobody needs is deleted. */
  async write(path: string, next: Ledger, edition: Edition, until: number): Promise<boolean> {
    const { mark, version } = edition;
    const child = markOf(path, mark);
    const parts = isEmpty(next)
      ? [remove(child), remove(path, version)]
      : [check(child), setData(path, writeLedger(mark, next), version)];
    const failed = await ask(this.#sessions.any(), parts, until);
    if (failed === null) return true;
    if (failed.err === CODES.badVersion) return false;
    if (failed.err !== CODES.noNode) throw refusal(failed.err);
    const now = await this.read(path, until);
    // A mark goes with its record only; without it nobody could ever write to the record again.
    if (now.edition?.mark === mark) throw unmarked(path);
    return false;
  }
}

async function ask(session: Session, parts: readonly Operation<unknown>[], until: number) {
  const { err, value } = await session.ask(multi(parts), until);
  if (value === null) throw refusal(err);
  return failedPart(value);
}

function markOf(path: string, mark: string): string {
  return `${path}/${mark}`;
}

function unmarked(path: string): EngineError {
  const message = `somebody deleted a child of ${path}, without which it is no lock: delete it too`;
  return new EngineError(message, { effect: "none", retryable: true });
}
