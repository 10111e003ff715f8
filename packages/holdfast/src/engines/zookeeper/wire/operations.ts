import { JuteReader, JuteWriter } from "./jute.js";

/** Answers of the server that are no failures of ours to explain. */
export const CODES = {
  ok: 0,
  inconsistent: -2,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  authFailed: -115,
  sessionMoved: -118,
} as const;

const CREATE_FLAGS = { persistent: 0, ephemeral: 1, sequential: 3, container: 4, counted: 2 };
const ANY_VERSION = -1;
const DATA_WATCHES = 2;
const CREATE_CONTAINER = 19;
const EVERY_RIGHT = 31;

/** ephemeral and "sequential" nodes end with the session; "counted" ones are sequential and stay. */
export type NodeKind = keyof typeof CREATE_FLAGS;

/** open: everybody may do everything. creator: whoever has our credentials. */
export type AclKind = "open" | "creator";

export interface Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly ctime: bigint;
  readonly mtime: bigint;
  readonly version: number;
  readonly ephemeralOwner: bigint;
  readonly numChildren: number;
}

export interface Created {
  readonly path: string;
  readonly stat: Stat;
}

export interface Node {
  readonly data: Buffer;
  readonly stat: Stat;
}

/** One request: its number, what goes with it, and how to read the answer. */
export interface Operation<T> {
  readonly opcode: number;
  /** Whether the leader takes part, so that an answer proves that it still knew our session. */
  readonly byLeader: boolean;
  write(to: JuteWriter): void;
  read(from: JuteReader): T;
}

export function create(
  path: string,
  data: Buffer,
  kind: NodeKind,
  acl: AclKind,
): Operation<Created> {
  return {
    opcode: kind === "container" ? CREATE_CONTAINER : 15,
    byLeader: true,
    write: (to) => {
      to.string(path).buffer(data).int(1).int(EVERY_RIGHT);
      if (acl === "open") to.string("world").string("anyone");
      else to.string("auth").string("");
      to.int(CREATE_FLAGS[kind]);
    },
    read: (from) => ({ path: from.string(), stat: readStat(from) }),
  };
}

export function remove(path: string, version = ANY_VERSION): Operation<null> {
  return write(2, (to) => to.string(path).int(version));
}

export function check(path: string, version = ANY_VERSION): Operation<null> {
  return write(13, (to) => to.string(path).int(version));
}

export function setData(path: string, data: Buffer, version = ANY_VERSION): Operation<Stat> {
  return {
    opcode: 5,
    byLeader: true,
    write: (to) => void to.string(path).buffer(data).int(version),
    read: readStat,
  };
}

/** Waits until the server that we are connected to has seen what the leader has seen. */
export function sync(path: string): Operation<string> {
  return {
    opcode: 9,
    byLeader: true,
    write: (to) => void to.string(path),
    read: (from) => from.string(),
  };
}

export function exists(path: string): Operation<Stat> {
  return ask(3, (to) => to.string(path).bool(false), readStat);
}

export function getData(path: string, watch = false): Operation<Node> {
  const read = (from: JuteReader) => ({ data: from.buffer(), stat: readStat(from) });
  return ask(4, (to) => to.string(path).bool(watch), read);
}

export function getChildren(path: string): Operation<{ names: string[]; stat: Stat }> {
  const read = (from: JuteReader) => ({ names: from.strings(), stat: readStat(from) });
  return ask(12, (to) => to.string(path).bool(false), read);
}

export function removeWatches(path: string): Operation<null> {
  return ask(18, (to) => to.string(path).int(DATA_WATCHES), nothing);
}

export function setWatches(lastZxid: bigint, paths: readonly string[]): Operation<null> {
  return ask(101, (to) => to.long(lastZxid).strings(paths).strings([]).strings([]), nothing);
}

export function authenticate(scheme: string, secret: Buffer): Operation<null> {
  return ask(100, (to) => to.int(0).string(scheme).buffer(secret), nothing);
}

export function closeSession(): Operation<null> {
  return write(-11, () => {});
}

/** What became of one operation of a multi. All succeed, or none has an effect. */
export interface Part {
  readonly err: number;
  readonly created: Created | null;
}

export function multi(parts: readonly Operation<unknown>[]): Operation<Part[]> {
  return {
    opcode: 14,
    byLeader: true,
    write: (to) => {
      for (const part of parts) {
        to.int(part.opcode).bool(false).int(-1);
        part.write(to);
      }
      to.int(-1).bool(true).int(-1);
    },
    read: readParts,
  };
}

function readParts(from: JuteReader): Part[] {
  const parts: Part[] = [];
  for (;;) {
    const type = from.int();
    const done = from.bool();
    const err = from.int();
    if (done) return parts;
    if (type === -1) parts.push({ err: from.int(), created: null });
    else if (type === 15 || type === CREATE_CONTAINER) {
      parts.push({ err, created: { path: from.string(), stat: readStat(from) } });
    } else {
      if (type === 1) from.string();
      if (type === 5) readStat(from);
      parts.push({ err, created: null });
    }
  }
}

/** The error that made a multi fail; the others of it say only that they were not carried out. */
export function failedPart(parts: readonly Part[]): { at: number; err: number } | null {
  const at = parts.findIndex(({ err }) => err !== CODES.ok && err !== CODES.inconsistent);
  return at < 0 ? null : { at, err: parts[at]!.err };
}

function write(opcode: number, body: (to: JuteWriter) => unknown): Operation<null> {
  return { opcode, byLeader: true, write: (to) => void body(to), read: nothing };
}

function ask<T>(
  opcode: number,
  body: (to: JuteWriter) => unknown,
  read: (from: JuteReader) => T,
): Operation<T> {
  return { opcode, byLeader: false, write: (to) => void body(to), read };
}

function nothing(): null {
  return null;
}

function readStat(from: JuteReader): Stat {
  const [czxid, mzxid, ctime, mtime] = [from.long(), from.long(), from.long(), from.long()];
  const version = from.int();
  from.int();
  from.int();
  const ephemeralOwner = from.long();
  from.int();
  const numChildren = from.int();
  from.long();
  return { czxid, mzxid, ctime, mtime, version, ephemeralOwner, numChildren };
}

export interface Welcome {
  /** 0 when the server no longer knows the session. */
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Buffer;
}

export interface Hello extends Welcome {
  readonly lastZxid: bigint;
}

export function writeHello({ lastZxid, timeoutMs, sessionId, password }: Hello): Buffer {
  const to = new JuteWriter().int(0).long(lastZxid).int(timeoutMs).long(sessionId);
  return to.buffer(password).bool(false).packet();
}

export function readWelcome(packet: Buffer): Welcome {
  const from = new JuteReader(packet);
  from.int();
  return { timeoutMs: from.int(), sessionId: from.long(), password: Buffer.from(from.buffer()) };
}

export function writeRequest(xid: number, operation: Operation<unknown>): Buffer {
  const to = new JuteWriter().int(xid).int(operation.opcode);
  operation.write(to);
  return to.packet();
}
