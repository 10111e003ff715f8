import { randomInt } from "node:crypto";
import { sleep, systemClock } from "../../../clock.js";
import { EngineError } from "../../../errors.js";
import { refusal } from "../failure.js";
import { tokenOf } from "../record.js";
import type { Rooms } from "../room.js";
import type { Sessions } from "../sessions.js";
import {
  type AclKind,
  CODES,
  create,
  getData,
  remove,
  setData,
  sync,
} from "../wire/operations.js";
import { EMPTY_LEDGER, isEmpty, type Ledger, readLedger, writeLedger } from "./record.js";
import { type Judged, Sightings } from "./sightings.js";

const NOTHING = Buffer.alloc(0);
const MOST_TRIES = 50;
const MOST_PAUSE_MS = 50;

/** What a decision is made on, and what it may write back. */
export interface Reading {
  readonly ledger: Ledger;
  readonly grants: readonly Judged[];
  /** For a grant that is written on this reading: greater than every earlier one's. */
  readonly token: bigint;
}

/** null writes nothing. */
export type Decision<A> = readonly [answer: A, next: Ledger | null];

/** Changes the ledger of a resource by reading it and writing it back if nobody wrote meanwhile. */
export class Ledgers {
  readonly sightings = new Sightings();
  readonly #sessions: Sessions;
  readonly #rooms: Rooms;
  readonly #acl: AclKind;
  readonly #turns = new Map<string, Promise<unknown>>();

  constructor(sessions: Sessions, rooms: Rooms, acl: AclKind) {
    this.#sessions = sessions;
    this.#rooms = rooms;
    this.#acl = acl;
  }

  async read(path: string, until: number): Promise<Reading | null> {
    const { reading } = await this.#read(path, until);
    return reading;
  }

  /** One at a time for each path: those of one process need not be in each other's way. */
  async change<A>(
    path: string,
    until: number,
    decide: (reading: Reading) => Decision<A>,
  ): Promise<A> {
    const before = this.#turns.get(path) ?? Promise.resolve();
    const work = before.then(() => this.#change(path, until, decide));
    const turn = work.catch(() => {});
    this.#turns.set(path, turn);
    void turn.then(() => {
      if (this.#turns.get(path) === turn) this.#turns.delete(path);
    });
    return work;
  }

  async #change<A>(path: string, until: number, decide: (reading: Reading) => Decision<A>) {
    for (let tries = 0; tries < MOST_TRIES && systemClock.now() < until; tries++) {
      const { reading, version } = await this.#read(path, until);
      if (reading === null) throw notOurs(path);
      const [answer, next] = decide(reading);
      if (next === null || (version === null && isEmpty(next))) return answer;
      // The token comes from the transaction that wrote what was read; without one there is none.
      if (version === null) await this.#make(path, until);
      else if (await this.#write(path, next, version, until)) return answer;
      if (version !== null) await sleep(systemClock, randomInt(MOST_PAUSE_MS), undefined);
    }
    const message = "others wrote too often for us to get in between";
    throw new EngineError(message, { effect: "none", retryable: true });
  }

  async #read(path: string, until: number) {
    const [, answer] = await this.#sessions.on(
      () => this.#sessions.any(),
      (session) => Promise.all([session.ask(sync(path), until), session.ask(getData(path), until)]),
    );
    if (answer.err === CODES.noNode) {
      const empty = this.sightings.judge(path, EMPTY_LEDGER);
      return { reading: { ...empty, token: 0n }, version: null };
    }
    if (answer.value === null) throw refusal(answer.err);
    const { data, stat } = answer.value;
    const ledger = readLedger(data);
    if (ledger === null) return { reading: null, version: stat.version };
    const reading = { ...this.sightings.judge(path, ledger), token: tokenOf(stat.mzxid) };
    return { reading, version: stat.version };
  }

  async #make(path: string, until: number): Promise<void> {
    const made = create(path, NOTHING, "persistent", this.#acl);
    const session = this.#sessions.any();
    const { err } = await session.ask(made, until);
    if (err === CODES.noNode) await this.#rooms.makeParents(session, path, until);
    else if (err !== CODES.ok && err !== CODES.nodeExists) throw refusal(err);
  }

  async #write(path: string, next: Ledger, version: number, until: number): Promise<boolean> {
    // What nobody needs any more goes: later tokens are greater by the zxid.
    const session = this.#sessions.any();
    const { err } = isEmpty(next)
      ? await session.ask(remove(path, version), until)
      : await session.ask(setData(path, writeLedger(next), version), until);
    if (err === CODES.ok) return true;
    if (err === CODES.badVersion || err === CODES.noNode) return false;
    throw refusal(err);
  }
}

function notOurs(path: string): EngineError {
  const message = `the node ${path} holds something that is not a lock`;
  return new EngineError(message, { effect: "none", retryable: false });
}
