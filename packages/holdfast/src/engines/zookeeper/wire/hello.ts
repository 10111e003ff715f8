import { JuteReader, JuteWriter } from "./jute.js";

/** The first packet of a connection. Session 0 asks for a new session. */
export interface Hello extends Welcome {
  /** Servers that have seen less than the client refuse it. */
  readonly lastZxid: bigint;
}

/** A server's answer to it. */
export interface Welcome {
  /** 0 when the server no longer knows the session. */
  readonly timeoutMs: number;
  readonly sessionId: bigint;
  readonly password: Buffer;
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
