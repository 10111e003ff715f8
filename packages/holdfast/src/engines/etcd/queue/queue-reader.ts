import type { EtcdClient } from "../client/client.js";
import { countOf, found, type Op, type RawTxn, range } from "../client/requests.js";
import { type Keys, markersIn, type Room } from "./keys.js";
import { type Entry, Line, type Member } from "./queue.js";

/** A waiter need not see the whole line: who holds, and who is next before it. */
export const FIRST = 64;
const NEAREST = 8;
/** What was read of a long line is good for so long to stand in it without another look. */
export const READ_WITHIN_MS = 10_000;

/** As much of a line as was asked for. */
export interface Seen {
  readonly line: Line;
  readonly complete: boolean;
  readonly nearest: readonly Member[];
  /** How many the newest in the room stands behind; null where somebody else asks. */
  readonly behind: number | null;
}

/** What is asked about the line of a resource, and what the answers say. */
export class Readings {
  readonly #client: EtcdClient;
  readonly #keys: Keys;

  constructor(client: EtcdClient, keys: Keys) {
    this.#client = client;
    this.#keys = keys;
  }

  /** The line of a resource, all of it. */
  line(resource: string, deadline: number): Promise<Line> {
    return this.#whole(this.#keys.room(resource), deadline);
  }

  /** Operations of a transaction that `seen` can read. */
  look(room: Room, { mode, limit }: Pick<Entry, "mode" | "limit">, createdBefore?: bigint): Op[] {
    // Of readers nobody knows how far before them the nearest writer is.
    const isOpen = mode === "shared" && (limit === null || limit > FIRST);
    if (isOpen) return [range(room, { order: "ASCEND" })];
    // Without createdBefore, the last of all has just come, and finds itself too.
    return [
      range(room, { order: "ASCEND", limit: FIRST }),
      range(markersIn(room)),
      range(room, {
        order: "DESCEND",
        limit: Math.max(NEAREST, (limit ?? 0) + 1),
        ...(createdBefore === undefined ? {} : { createdBefore }),
      }),
    ];
  }

  async seen(
    room: Room,
    txn: RawTxn,
    at: number,
    deadline: number,
    isNewest = false,
  ): Promise<Seen> {
    const first = found(txn, at);
    const marks = found(txn, at + 1);
    const behind = isNewest ? countOf(txn, at) - marks.length - 1 : null;
    const complete = first.length === countOf(txn, at);
    const line = new Line([...first, ...marks]);
    // A mark whose grant is not among the first need not be an orphan.
    if (!complete && line.orphans.length > 0) {
      return { line: await this.#whole(room, deadline), complete: true, nearest: [], behind };
    }
    const nearest = new Line(found(txn, at + 2)).members.toReversed();
    return { line, complete, nearest, behind };
  }

  async #whole(room: Room, deadline: number): Promise<Line> {
    const txn = { compare: [], success: [range(room, { order: "ASCEND" })], failure: [] };
    const options = { deadline, repeatable: true };
    return new Line(found(await this.#client.txn(txn, options), 0));
  }
}
