import { createConnection, createServer, type Server, type Socket } from "node:net";

// A packet of the server: its length, the number of the request, the zxid, an error code, a body.
const HEADER = { length: 4, xid: 4, code: 16, end: 20 } as const;

type Garble = (packet: Buffer) => Buffer;

/** Ways in which any answer can be wrong. */
const SHAPES: Readonly<Record<string, Garble>> = {
  "a header cut short": (packet) => framed(packet.subarray(HEADER.length, 14)),
  "a body cut short": (packet) => {
    const missing = packet.length > HEADER.end ? 1 : 7;
    return framed(packet.subarray(HEADER.length, packet.length - missing));
  },
  "bytes after its end": (packet) => {
    return framed(Buffer.concat([packet.subarray(HEADER.length), Buffer.alloc(4)]));
  },
  "a body of nonsense": (packet) => {
    const nonsense = Buffer.alloc(Math.max(8, packet.length - HEADER.end), 0xff);
    return framed(Buffer.concat([packet.subarray(HEADER.length, HEADER.end), nonsense]));
  },
  "an answer to something else": (packet) => {
    const other = Buffer.from(packet);
    other.writeInt32BE(packet.readInt32BE(HEADER.xid) + 1_000, HEADER.xid);
    return other;
  },
  "an unknown code": (packet) => {
    const refused = Buffer.from(packet.subarray(HEADER.length, HEADER.end));
    refused.writeInt32BE(-7_777, HEADER.code - HEADER.length);
    return framed(refused);
  },
};

/** A relay that alters the answers of the server. Welcomes and events pass as they are. */
export class GarblingRelay implements AsyncDisposable {
  static readonly shapes: readonly string[] = Object.keys(SHAPES);
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #garble: Garble | null = null;

  private constructor(target: number) {
    this.#server = createServer((client) => this.#relay(client, target));
  }

  static async start(target: number): Promise<GarblingRelay> {
    const relay = new GarblingRelay(target);
    await new Promise<void>((go) => relay.#server.listen(0, "127.0.0.1", go));
    return relay;
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  answerWith(shape: string | null): void {
    this.#garble = shape === null ? null : SHAPES[shape]!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }

  #relay(client: Socket, target: number): void {
    const upstream = createConnection(target, "127.0.0.1");
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (bytes) => upstream.write(bytes));
    let unread: Buffer = Buffer.alloc(0);
    let welcomed = false;
    upstream.on("data", (bytes: Buffer) => {
      unread = Buffer.concat([unread, bytes]);
      while (unread.length >= 4 && unread.length >= 4 + unread.readInt32BE(0)) {
        const packet = unread.subarray(0, 4 + unread.readInt32BE(0));
        unread = unread.subarray(packet.length);
        // The first packet is the welcome and has no number. Numbers of events are negative.
        const isAnswer = welcomed && packet.readInt32BE(HEADER.xid) >= 0;
        welcomed = true;
        client.write(isAnswer && this.#garble !== null ? this.#garble(packet) : packet);
      }
    });
  }
}

function framed(content: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(content.length, 0);
  return Buffer.concat([length, content]);
}
