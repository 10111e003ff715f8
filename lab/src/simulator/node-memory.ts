/** What a node keeps, as the scripts keep it in Redis. */
export interface Record {
  readonly id: string;
  readonly mode: "x" | "s";
  readonly attempt: number;
  readonly fence: number;
  readonly tokens: number;
  readonly delay: number;
  /** Of the latest call that set its end: one with a smaller number comes too late. */
  order: number;
  /** Which of its tokens is in use. */
  index: number;
  revoked: boolean;
  /** Its holder has gone and left it to time. */
  left: boolean;
  ends: number;
  readonly born: number;
  readonly label: string;
}

export interface Waiting {
  readonly ticket: number;
  readonly mode: "x" | "s";
  readonly arrivalMs: number;
  readonly ends: number;
}

export class Room {
  records: Record[] = [];
  fence = 0;
  /** Until when the counter is kept. */
  fenceEnds = 0;
  /** What this node has accepted, for the checker; the rules do not read it. */
  accepted: number[] = [];
  gone = new Map<string, { upTo: number; order: number; ends: number }>();
  /** Those who wait, by id. */
  line = new Map<string, Waiting>();
  called: { id: string; at: number } | null = null;

  copy(): Room {
    const copy = new Room();
    copy.records = this.records.map((record) => ({ ...record }));
    copy.fence = this.fence;
    copy.fenceEnds = this.fenceEnds;
    copy.accepted = [...this.accepted];
    copy.gone = new Map(this.gone);
    copy.line = new Map(this.line);
    copy.called = this.called;
    return copy;
  }
}

export class Memory {
  rooms = new Map<string, Room>();
  certificate: string | null = null;
  nonce: string | null = null;

  room(resource: string): Room {
    let room = this.rooms.get(resource);
    if (room === undefined) {
      room = new Room();
      this.rooms.set(resource, room);
    }
    return room;
  }

  copy(): Memory {
    const copy = new Memory();
    for (const [name, room] of this.rooms) copy.rooms.set(name, room.copy());
    copy.certificate = this.certificate;
    copy.nonce = this.nonce;
    return copy;
  }
}
