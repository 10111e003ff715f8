import { CODES } from "./codes.js";
import type { JuteReader } from "./jute.js";
import { type Created, check, OPCODES, type Operation, readStat } from "./operations.js";

/** The outcome of one operation of a transaction. */
export interface Part {
  readonly err: number;
  readonly created: Created | null;
}

/** A transaction: all its operations succeed, or none has an effect. */
export function multi(parts: readonly Operation<unknown>[]): Operation<Part[]> {
  return {
    opcode: OPCODES.multi,
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
 * A transaction that changes nothing. The leader checks that our session is alive before it
 * proposes the transaction, and only a majority can commit it, whatever the path. A server that
 * answers has seen all earlier changes.
 */
export function noop(path: string): Operation<Part[]> {
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
  switch (type) {
    case OPCODES.createWithStat:
    case OPCODES.createContainer:
      return { err, created: { path: from.string(), stat: readStat(from) } };
    case OPCODES.create:
      from.string();
      break;
    case OPCODES.setData:
      readStat(from);
      break;
    case OPCODES.remove:
    case OPCODES.check:
      break;
    default:
      throw new RangeError(`a part of a multi of type ${type}`);
  }
  return { err, created: null };
}

/** The part that made a transaction fail. Its other parts only say that they did not run. */
export function failedPart(parts: readonly Part[]): { at: number; err: number } | null {
  const at = parts.findIndex(({ err }) => err !== CODES.ok && err !== CODES.inconsistent);
  return at < 0 ? null : { at, err: parts[at]!.err };
}
