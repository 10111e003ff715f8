import { JuteReader, JuteWriter } from "./jute.js";

/** All answer codes of the servers. failure.ts says what each of them means. */
export const CODES = {
  ok: 0,
  systemError: -1,
  inconsistent: -2,
  dataInconsistent: -3,
  connectionLoss: -4,
  marshalling: -5,
  unimplemented: -6,
  timeout: -7,
  badArguments: -8,
  unknownSession: -12,
  apiError: -100,
  noNode: -101,
  noAuth: -102,
  badVersion: -103,
  noChildren: -108,
  nodeExists: -110,
  notEmpty: -111,
  sessionExpired: -112,
  invalidAcl: -114,
  authFailed: -115,
  sessionMoved: -118,
  readOnly: -119,
  localSession: -120,
  noWatcher: -121,
  requestTimeout: -122,
  saslRequired: -124,
  quotaExceeded: -125,
  throttled: -127,
} as const;

const KNOWN = new Set<number>(Object.values(CODES));

/** Whether servers use this code. An answer with another code is malformed. */
export function isKnownCode(code: number): boolean {
  return KNOWN.has(code);
}

/** Whether this code means that the session is over, or is used by another connection. */
export function isSessionError(code: number | undefined): boolean {
  return code === CODES.sessionExpired || code === CODES.sessionMoved;
}

const CREATE_FLAGS = { persistent: 0, ephemeral: 1, sequential: 3, container: 4, counted: 2 };
const ANY_VERSION = -1;
const DATA_WATCHES = 2;
const CREATE_CONTAINER = 19;
const EVERY_RIGHT = 31;

/** ephemeral and "sequential" nodes end with the session; "counted" ones are sequential and stay. */
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
   * Whether a majority agrees on the answer, which then proves that our session was alive. A leader that
   * is cut off or was replaced, and has not noticed, answers all other requests alone, even `sync`.
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
    opcode: kind === "container" ? CREATE_CONTAINER : 15,
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
  return write(2, (to) => to.string(path).int(version));
}

export function check(path: string, version = ANY_VERSION): Operation<null> {
  return write(13, (to) => to.string(path).int(version));
}

export function setData(path: string, data: Buffer, version = ANY_VERSION): Operation<Stat> {
  return {
    opcode: 5,
    ...{ byMajority: true, writes: true },
    write: (to) => void to.string(path).buffer(data).int(version),
    read: readStat,
  };
}

/** Waits until the connected server has seen everything that the leader has seen. */
export function sync(path: string): Operation<string> {
  return {
    opcode: 9,
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
  return ask(3, (to) => to.string(path).bool(false), readStat);
}

export function getData(path: string, watch = false): Operation<Node> {
  const read = (from: JuteReader) => {
    const node = { data: from.buffer(), stat: readStat(from) };
    if (node.data.length !== node.stat.dataLength) throw new RangeError("data of another length");
    return node;
  };
  return ask(4, (to) => to.string(path).bool(watch), read);
}

export function getChildren(path: string): Operation<{ names: string[]; stat: Stat }> {
  const read = (from: JuteReader) => {
    const children = { names: from.strings(), stat: readStat(from) };
    if (children.names.length === children.stat.numChildren) return children;
    throw new RangeError("another number of children");
  };
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

/** The outcome of one operation of a multi. All operations succeed, or none has an effect. */
export interface Part {
  readonly err: number;
  readonly created: Created | null;
}

export function multi(parts: readonly Operation<unknown>[]): Operation<Part[]> {
  return {
    opcode: 14,
    ...{ byMajority: true, writes: true },
    write: (to) => {
      for (const part of parts) {
        to.int(part.opcode).bool(false).int(-1);
        part.write(to);
      }
      to.int(-1).bool(true).int(-1);
    },
    read: (from) => readParts(from, parts.length),
  };
}

/**
 * A transaction that changes nothing. The leader checks that our session is alive before it proposes the
 * transaction, and only a majority can commit it, whatever the path. A server that answers has seen all
 * earlier changes.
 */
export function vouch(path: string): Operation<Part[]> {
  return { ...multi([check(path)]), writes: false };
}

function readParts(from: JuteReader, count: number): Part[] {
  const parts: Part[] = [];
  for (;;) {
    const type = from.int();
    const done = from.bool();
    const err = from.int();
    if (done) break;
    if (parts.length === count) throw new RangeError("more answers than parts of a multi");
    parts.push(type === -1 ? { err: from.int(), created: null } : readPart(from, type, err));
  }
  if (parts.length === count) return parts;
  throw new RangeError(`${parts.length} answers to the ${count} parts of a multi`);
}

function readPart(from: JuteReader, type: number, err: number): Part {
  if (type === 15 || type === CREATE_CONTAINER) {
    return { err, created: { path: from.string(), stat: readStat(from) } };
  }
  if (type === 1) from.string();
  else if (type === 5) readStat(from);
  else if (type !== 2 && type !== 13) throw new RangeError(`a part of a multi of type ${type}`);
  return { err, created: null };
}

/** The error that made a multi fail. Its other parts only say that they did not run. */
export function failedPart(parts: readonly Part[]): { at: number; err: number } | null {
  const at = parts.findIndex(({ err }) => err !== CODES.ok && err !== CODES.inconsistent);
  return at < 0 ? null : { at, err: parts[at]!.err };
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

function readStat(from: JuteReader): Stat {
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
