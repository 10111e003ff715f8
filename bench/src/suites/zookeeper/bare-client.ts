import { once } from "node:events";
import { createConnection, type Socket } from "node:net";

const OP = { create: 1, remove: 2, setData: 5, children: 8 } as const;
const NO_NODE = -101;
const HEADER_BYTES = 16;
const ANY_VERSION = -1;
// Longer than any measurement, so that nothing has to be sent to keep it.
const SESSION_MS = 600_000;

/**
 * Requests and their answers, in order, and nothing else: what the wire allows. Never reconnects.
 */
export class BareClient {
  readonly #socket: Socket;
  readonly #waiting: { resolve(answer: Buffer): void; reject(error: Error): void }[] = [];
  #received = Buffer.alloc(0);
  #lastXid = 0;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("error", () => {});
    socket.on("close", () => {
      for (const one of this.#waiting.splice(0)) one.reject(new Error("the connection is closed"));
    });
  }

  static async open(hosts: string): Promise<BareClient> {
    const [host, port] = hosts.split(":");
    const socket = createConnection({ host, port: Number(port), noDelay: true });
    await once(socket, "connect");
    const client = new BareClient(socket);
    // Version, last zxid, timeout, session, an empty password, not read-only.
    await client.#send([int(0), long(0), int(SESSION_MS), long(0), text("\0".repeat(16)), bool()]);
    return client;
  }

  async create(path: string, { ephemeral = false } = {}): Promise<void> {
    const everybody = [int(1), int(31), text("world"), text("anyone")];
    await this.#ask(OP.create, text(path), text(""), ...everybody, int(ephemeral ? 1 : 0));
  }

  async remove(path: string): Promise<void> {
    await this.#ask(OP.remove, text(path), int(ANY_VERSION));
  }

  async setData(path: string, data: string): Promise<void> {
    await this.#ask(OP.setData, text(path), text(data), int(ANY_VERSION));
  }

  /** How many there are; none where there is no such node. */
  async children(path: string): Promise<number> {
    const answer = await this.#ask(OP.children, text(path), bool());
    return answer === null ? 0 : answer.readInt32BE(HEADER_BYTES);
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Null where there is no such node. */
  async #ask(op: number, ...body: Buffer[]): Promise<Buffer | null> {
    const answer = await this.#send([int(++this.#lastXid), int(op), ...body]);
    const error = answer.readInt32BE(HEADER_BYTES - 4);
    if (error === NO_NODE && op === OP.children) return null;
    if (error !== 0) throw new Error(`ZooKeeper answers operation ${op} with ${error}`);
    return answer;
  }

  #send(parts: readonly Buffer[]): Promise<Buffer> {
    const body = Buffer.concat(parts);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#socket.write(Buffer.concat([int(body.length), body]));
    });
  }

  #receive(bytes: Buffer): void {
    this.#received = Buffer.concat([this.#received, bytes]);
    while (this.#received.length >= 4) {
      const end = 4 + this.#received.readInt32BE(0);
      if (this.#received.length < end) return;
      this.#waiting.shift()?.resolve(this.#received.subarray(4, end));
      this.#received = this.#received.subarray(end);
    }
  }
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function long(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value));
  return bytes;
}

function bool(): Buffer {
  return Buffer.alloc(1);
}

function text(value: string): Buffer {
  return Buffer.concat([int(Buffer.byteLength(value)), Buffer.from(value)]);
}
