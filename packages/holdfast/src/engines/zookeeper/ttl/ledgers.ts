import { randomInt } from "node:crypto";
import { sleep, systemClock } from "../../../clock.js";
import { EngineError } from "../../../errors.js";
import { refusal } from "../failure.js";
import { tokenOf } from "../record.js";
import type { Rooms } from "../room.js";
import type { Sessions } from "../sessions.js";
import { type AclKind, CODES, create, getData, remove, setData, sync } from "../wire/operations.js";
import { emptyLedger, isEmpty, type Ledger, readLedger, writeLedger } from "./record.js";
import { type Judged, Sightings } from "./sightings.js";

const NOTHING = Buffer.alloc(0);
const MOST_PAUSE_MS = 50;

/** What a decision is made on, and what it may write back. */
export interface Reading {
  readonly ledger: Ledger;
  readonly grants: readonly Judged[];
  /** For the one grant that may be written on this reading: greater than every earlier one's. */
  takeToken(): bigint;
}

interface Change {
  readonly until: number;
  readonly decide: (reading: Reading) => Decision<unknown>;
  readonly resolve: (answer: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** null writes nothing. */
export type Decision<A> = readonly [answer: A, next: Ledger | null];

/** Changes the ledger of a resource by reading it and writing it back if nobody wrote meanwhile. */
export class Ledgers {
  readonly sightings = new Sightings();
  readonly #sessions: Sessions;
  readonly #rooms: Rooms;
  readonly #acl: AclKind;
  readonly #waiting = new Map<string, Change[]>();

  constructor(sessions: Sessions, rooms: Rooms, acl: AclKind) {
    this.#sessions = sessions;
    this.#rooms = rooms;
    this.#acl = acl;
  }

  async read(path: string, until: number): Promise<Reading | null> {
    const { ledger } = await this.#read(path, until);
    return ledger === null ? null : this.#reading(path, ledger, () => 0n);
  }

  /** Those of one process need not be in each other's way: what waits is written together. */
  change<A>(path: string, until: number, decide: (reading: Reading) => Decision<A>): Promise<A> {
    return new Promise<A>((resolve, reject) => {
      const change = { until, decide, resolve: resolve as (answer: unknown) => void, reject };
      const waiting = this.#waiting.get(path);
      if (waiting !== undefined) {
        waiting.push(change);
        return;
      }
      const first: Change[] = [change];
      this.#waiting.set(path, first);
      void this.#work(path, first);
    });
  }

  async #work(path: string, waiting: Change[]): Promise<void> {
    for (let tries = 0; waiting.length > 0; tries++) {
      const now = systemClock.now();
      for (const late of waiting.filter(({ until }) => until <= now)) {
        waiting.splice(waiting.indexOf(late), 1);
        late.reject(tooBusy());
      }
      if (waiting.length === 0) break;
      try {
        if (await this.#round(path, waiting)) tries = 0;
        else if (tries > 0) await sleep(systemClock, randomInt(MOST_PAUSE_MS), undefined, false);
      } catch (error) {
        // Whoever asks again does so with the same grantId, and finds what was written after all.
        for (const { reject } of waiting.splice(0)) reject(error as Error);
      }
    }
    this.#waiting.delete(path);
  }

  /** One reading, the decisions of all who wait, one write. False if somebody wrote in between. */
  async #round(path: string, waiting: Change[]): Promise<boolean> {
    const until = waiting.reduce((latest, change) => Math.max(latest, change.until), 0);
    const { ledger, version, token } = await this.#read(path, until);
    if (ledger === null) throw notOurs(path);
    const answered: { change: Change; settle: () => void }[] = [];
    let next = ledger;
    let [changed, taken] = [false, false];
    const takeToken = () => {
      taken = true;
      return token;
    };
    for (const change of waiting) {
      if (taken) break;
      const reading = this.#reading(path, next, takeToken);
      try {
        const [answer, wanted] = change.decide(reading);
        answered.push({ change, settle: () => change.resolve(answer) });
        if (wanted === null) continue;
        [next, changed] = [wanted, true];
      } catch (error) {
        answered.push({ change, settle: () => change.reject(error as Error) });
      }
    }
    if (changed && !(version === null && isEmpty(next))) {
      if (version === null) {
        await this.#make(path, until);
        return false;
      }
      if (!(await this.#write(path, next, version, until))) return false;
      // Our own grants stand still from here on, like anybody's.
      this.sightings.see(path, next);
    }
    for (const { change, settle } of answered) {
      waiting.splice(waiting.indexOf(change), 1);
      settle();
    }
    return true;
  }

  #reading(path: string, ledger: Ledger, takeToken: () => bigint): Reading {
    return { ...this.sightings.judge(path, ledger), takeToken };
  }

  async #read(path: string, until: number) {
    const [, answer] = await this.#sessions.on(
      () => this.#sessions.any(),
      (session) => Promise.all([session.ask(sync(path), until), session.ask(getData(path), until)]),
    );
    if (answer.value === null && answer.err !== CODES.noNode) throw refusal(answer.err);
    const ledger = answer.value === null ? emptyLedger() : readLedger(answer.value.data);
    if (ledger !== null) this.sightings.see(path, ledger);
    if (answer.value === null) return { ledger, version: null, token: 0n };
    // From the transaction that wrote what was read: nobody else can write on top of the same.
    const { version, mzxid } = answer.value.stat;
    return { ledger, version, token: tokenOf(mzxid) };
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

function tooBusy(): EngineError {
  const message = "others wrote too often for us to get in between";
  return new EngineError(message, { effect: "none", retryable: true });
}

function notOurs(path: string): EngineError {
  const message = `the node ${path} holds something that is not a lock`;
  return new EngineError(message, { effect: "none", retryable: false });
}
