import { type JuteReader, JuteWriter } from "./jute.js";

export const OPCODES = {
  ...{ create: 1, remove: 2, exists: 3, getData: 4, setData: 5, sync: 9, getChildren: 12 },
  ...{ check: 13, multi: 14, createWithStat: 15, removeWatches: 18, createContainer: 19 },
  ...{ authenticate: 100, setWatches: 101, closeSession: -11 },
} as const;

const CREATE_FLAGS = { persistent: 0, ephemeral: 1, sequential: 3, container: 4, counted: 2 };
const ANY_VERSION = -1;
const DATA_WATCHES = 2;
const EVERY_RIGHT = 31;

/**
 * ephemeral and "sequential" nodes end with the session; "counted" ones are sequential and stay.
 */
export type NodeKind = keyof typeof CREATE_FLAGS;

/** open: everybody may do everything. creator: only clients with our credentials may. */
export type AclKind = "open" | "creator";

export interface Stat {
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly ctime: bigint;
  readonly mtime: bigint;
  readonly version: number;
  readonly ephemeralOwner: bigint;
  readonly dataLength: number;
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

/** One request: its type, its body, and how to read the answer. */
export interface Operation<T> {
  readonly opcode: number;
  /**
   * Whether a majority agrees on the answer, which then proves that our session was alive. A leader
   * that is cut off or was replaced, and has not noticed, answers all other requests alone, even
   * `sync`.
   */
  readonly byMajority: boolean;
  readonly writes: boolean;
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
    opcode: kind === "container" ? OPCODES.createContainer : OPCODES.createWithStat,
    ...{ byMajority: true, writes: true },
    write: (to) => {
      to.string(path).buffer(data).int(1).int(EVERY_RIGHT);
      if (acl === "open") to.string("world").string("anyone");
      else to.string("auth").string("");
      to.int(CREATE_FLAGS[kind]);
    },
    read: (from) => readCreated(from, path, kind),
  };
}

export function remove(path: string, version = ANY_VERSION): Operation<null> {
  return write(OPCODES.remove, (to) => to.string(path).int(version));
}

export function check(path: string, version = ANY_VERSION): Operation<null> {
  return write(OPCODES.check, (to) => to.string(path).int(version));
}

export function setData(path: string, data: Buffer, version = ANY_VERSION): Operation<Stat> {
  return {
    opcode: OPCODES.setData,
    ...{ byMajority: true, writes: true },
    write: (to) => void to.string(path).buffer(data).int(version),
    read: readStat,
  };
}

/** Waits until the connected server has seen everything that the leader has seen. */
export function sync(path: string): Operation<string> {
  return {
    opcode: OPCODES.sync,
    ...{ byMajority: false, writes: false },
    write: (to) => void to.string(path),
    read: (from) => {
      const of = from.string();
      if (of !== path) throw new RangeError("an answer to a sync of another path");
      return of;
    },
  };
}

export function exists(path: string): Operation<Stat> {
  return ask(OPCODES.exists, (to) => to.string(path).bool(false), readStat);
}

export function getData(path: string, watch = false): Operation<Node> {
  const read = (from: JuteReader) => {
    const node = { data: from.buffer(), stat: readStat(from) };
    if (node.data.length !== node.stat.dataLength) throw new RangeError("data of another length");
    return node;
  };
  return ask(OPCODES.getData, (to) => to.string(path).bool(watch), read);
}

export function getChildren(path: string): Operation<{ names: string[]; stat: Stat }> {
  const read = (from: JuteReader) => {
    const children = { names: from.strings(), stat: readStat(from) };
    if (children.names.length === children.stat.numChildren) return children;
    throw new RangeError("another number of children");
  };
  return ask(OPCODES.getChildren, (to) => to.string(path).bool(false), read);
}

export function removeWatches(path: string): Operation<null> {
  return ask(OPCODES.removeWatches, (to) => to.string(path).int(DATA_WATCHES), nothing);
}

export function setWatches(lastZxid: bigint, paths: readonly string[]): Operation<null> {
  return ask(
    OPCODES.setWatches,
    (to) => to.long(lastZxid).strings(paths).strings([]).strings([]),
    nothing,
  );
}

export function authenticate(scheme: string, secret: Buffer): Operation<null> {
  return ask(OPCODES.authenticate, (to) => to.int(0).string(scheme).buffer(secret), nothing);
}

export function closeSession(): Operation<null> {
  return write(OPCODES.closeSession, () => {});
}

/** The servers append a number to the names of sequential nodes only. */
function readCreated(from: JuteReader, wanted: string, kind: NodeKind): Created {
  const made = { path: from.string(), stat: readStat(from) };
  const isCounted = kind === "sequential" || kind === "counted";
  const right = isCounted ? made.path.startsWith(wanted) : made.path === wanted;
  if (!right) throw new RangeError("a node of another name was made");
  return made;
}

function write(opcode: number, body: (to: JuteWriter) => unknown): Operation<null> {
  const kind = { byMajority: true, writes: true };
  return { opcode, ...kind, write: (to) => void body(to), read: nothing };
}

function ask<T>(
  opcode: number,
  body: (to: JuteWriter) => unknown,
  read: (from: JuteReader) => T,
): Operation<T> {
  return { opcode, byMajority: false, writes: false, write: (to) => void body(to), read };
}

function nothing(): null {
  return null;
}

export function readStat(from: JuteReader): Stat {
  const [czxid, mzxid, ctime, mtime] = [from.long(), from.long(), from.long(), from.long()];
  const version = from.int();
  from.int();
  from.int();
  const ephemeralOwner = from.long();
  const [dataLength, numChildren] = [from.int(), from.int()];
  from.long();
  if (czxid < 0n || mzxid < czxid) throw new RangeError("a node without a beginning");
  return { czxid, mzxid, ctime, mtime, version, ephemeralOwner, dataLength, numChildren };
}

export function writeRequest(xid: number, operation: Operation<unknown>): Buffer {
  const to = new JuteWriter().int(xid).int(operation.opcode);
  operation.write(to);
  return to.packet();
}
