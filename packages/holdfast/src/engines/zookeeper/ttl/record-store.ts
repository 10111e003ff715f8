import { randomBytes } from "node:crypto";
import { EngineError } from "../../../errors.js";
import type { ResourceNodes } from "../claims/resource-nodes.js";
import { refusal } from "../failure.js";
import { tokenOf } from "../node-record.js";
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
import {
  emptyRecord,
  isEmpty,
  type LockRecord,
  readLockRecord,
  writeLockRecord,
} from "./lock-record.js";

const NONCE_BYTES = 16;

/** Which state of which record was read. */
export interface RecordVersion {
  readonly nonce: string;
  readonly version: number;
}

/** A record as it was read. */
export interface StoredRecord {
  /** Null for a node that holds something else. */
  readonly record: LockRecord | null;
  /** Null if there is no record. */
  readonly version: RecordVersion | null;
  /** For the one grant that may be written to this state of the record. */
  readonly token: bigint;
  /** By the leader's clock; null if there is no record. */
  readonly writtenAt: LeaderTime | null;
}

/**
 * Reads and writes records. Each record is a node with one child. ZooKeeper counts the versions of
 * a node from 0 again when the node was deleted and made anew, so a request that arrives late would
 * fit a record that it was not meant for. The name of the child is a nonce: random, and never used
 * again. A record and its child are made together and deleted together, and every write checks both
 * nonce and version.
 */
export class RecordStore {
  readonly #sessions: Sessions;
  readonly #resourceNodes: ResourceNodes;
  readonly #acl: AclKind;

  constructor(sessions: Sessions, resourceNodes: ResourceNodes, acl: AclKind) {
    this.#sessions = sessions;
    this.#resourceNodes = resourceNodes;
    this.#acl = acl;
  }

  async read(path: string, until: number): Promise<StoredRecord> {
    const [synced, answer] = await this.#sessions.on(
      () => this.#sessions.any(),
      (session) => Promise.all([session.ask(sync(path), until), session.ask(getData(path), until)]),
    );
    if (synced.err !== CODES.ok) throw refusal(synced.err);
    if (answer.value === null) {
      if (answer.err !== CODES.noNode) throw refusal(answer.err);
      return { record: emptyRecord(), version: null, token: 0n, writtenAt: null };
    }
    const { data, stat } = answer.value;
    const known = readLockRecord(data);
    if (known === null) return { record: null, version: null, token: 0n, writtenAt: null };
    const { nonce, record } = known;
    const writtenAt = { atMs: stat.mtime, zxid: stat.mzxid };
    // From the transaction that wrote this state: only one client can write to the same state.
    const token = tokenOf(stat.mzxid);
    return { record, version: { nonce, version: stat.version }, token, writtenAt };
  }

  /** Makes an empty record, unless there is one. A token needs a record that can be read. */
  async create(path: string, until: number): Promise<void> {
    // New for each request: a request that arrives late must not bring back a nonce that was in
    // use.
    const nonce = randomBytes(NONCE_BYTES).toString("hex");
    const record = create(path, writeLockRecord(nonce, emptyRecord()), "persistent", this.#acl);
    const child = create(childOf(path, nonce), Buffer.alloc(0), "persistent", this.#acl);
    const session = this.#sessions.any();
    const failed = await ask(session, [record, child], until);
    if (failed?.err === CODES.noNode) await this.#resourceNodes.makeParents(session, path, until);
    else if (failed !== null && failed.err !== CODES.nodeExists) throw refusal(failed.err);
  }

  /** False if anybody wrote since the record was read. A record that nobody needs is deleted. */
  async write(
    path: string,
    next: LockRecord,
    { nonce, version }: RecordVersion,
    until: number,
  ): Promise<boolean> {
    const child = childOf(path, nonce);
    const parts = isEmpty(next)
      ? [remove(child), remove(path, version)]
      : [check(child), setData(path, writeLockRecord(nonce, next), version)];
    const failed = await ask(this.#sessions.any(), parts, until);
    if (failed === null) return true;
    if (failed.err === CODES.badVersion) return false;
    if (failed.err !== CODES.noNode) throw refusal(failed.err);
    const now = await this.read(path, until);
    // The child ends only with its record. Without it nobody could ever write to the record again.
    if (now.version?.nonce === nonce) throw childless(path);
    return false;
  }
}

async function ask(session: Session, parts: readonly Operation<unknown>[], until: number) {
  const { err, value } = await session.ask(multi(parts), until);
  if (value === null) throw refusal(err);
  return failedPart(value);
}

function childOf(path: string, nonce: string): string {
  return `${path}/${nonce}`;
}

function childless(path: string): EngineError {
  const message = `somebody deleted a child of ${path}, without which it is no lock: delete it too`;
  return new EngineError(message, { effect: "none", retryable: true });
}
