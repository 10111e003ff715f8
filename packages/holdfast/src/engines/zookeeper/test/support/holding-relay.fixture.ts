import { createConnection, createServer, type Server, type Socket } from "node:net";

/** What a request does. A transaction counts as its first operation. */
export type RequestKind = "create" | "write" | "removal" | "other";

type Fate = "passes" | "held" | "unanswered";

const OPCODES = { remove: 2, setData: 5, check: 13, multi: 14, create: 15 } as const;

/**
 * A relay that holds back a request of one kind, and everything that follows on the same
 * connection, like the socket of a server that hangs. `deliver` sends what was held back, in order.
 */
export class HoldingRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #next: { readonly kind: RequestKind; readonly fate: Fate } | null = null;
  #lost = 0;
  #isLast = false;

  private constructor(target: number) {
    this.#server = createServer((client) => {
      const link = new Link(client, createConnection(target, "127.0.0.1"), (kind) => {
        if (kind !== this.#next?.kind) return "passes";
        const { fate } = this.#next;
        this.#next = null;
        if (fate === "unanswered") this.#lost++;
        if (fate === "unanswered" && this.#isLast) this.#server.close();
        return fate;
      });
      this.#links.add(link);
    });
  }

  static async start(target: number): Promise<HoldingRelay> {
    const relay = new HoldingRelay(target);
    await new Promise<void>((go) => relay.#server.listen(0, "127.0.0.1", go));
    return relay;
  }

  get hosts(): string {
    return `127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** Holds back the next request of this kind. */
  holdNext(kind: RequestKind): void {
    this.#next = { kind, fate: "held" };
  }

  /**
   * The next request of this kind arrives, and the connection breaks before its answer. With isLast
   * no new connection is accepted.
   */
  loseAnswerTo(kind: RequestKind, { isLast = false } = {}): void {
    this.#next = { kind, fate: "unanswered" };
    this.#isLast = isLast;
  }

  /** How many answers were lost. */
  get lost(): number {
    return this.#lost;
  }

  get holds(): boolean {
    return [...this.#links].some((link) => link.holds);
  }

  /** Sends everything that was held back. */
  deliver(): void {
    this.#next = null;
    for (const link of this.#links) link.deliver();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const link of this.#links) link.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }
}

/** One connection. The connection to the server stays open while something is held back. */
class Link {
  readonly #upstream: Socket;
  readonly #client: Socket;
  #unread: Buffer = Buffer.alloc(0);
  #greeted = false;
  #isMute = false;
  #held: Buffer[] | null = null;

  constructor(client: Socket, upstream: Socket, fateOf: (kind: RequestKind) => Fate) {
    this.#client = client;
    this.#upstream = upstream;
    for (const socket of [client, upstream]) socket.on("error", () => {}).setNoDelay(true);
    upstream.on("data", (bytes) => {
      if (this.#isMute) this.destroy();
      else client.write(bytes);
    });
    upstream.on("close", () => client.destroy());
    client.on("close", () => this.holds || upstream.destroy());
    client.on("data", (bytes: Buffer) => {
      this.#unread = Buffer.concat([this.#unread, bytes]);
      for (let packet = this.#next(); packet !== null; packet = this.#next()) {
        const fate = this.#held === null && this.#greeted ? fateOf(kindOf(packet)) : "passes";
        if (fate === "held") this.#held = [];
        if (fate === "unanswered") this.#isMute = true;
        // The first packet is the hello and has no number.
        this.#greeted = true;
        if (this.#held === null) upstream.write(packet);
        else this.#held.push(packet);
      }
    });
  }

  get holds(): boolean {
    return this.#held !== null;
  }

  deliver(): void {
    const held = this.#held;
    this.#held = null;
    if (held !== null) this.#upstream.write(Buffer.concat(held));
  }

  destroy(): void {
    this.#client.destroy();
    this.#upstream.destroy();
  }

  #next(): Buffer | null {
    if (this.#unread.length < 4) return null;
    const length = 4 + this.#unread.readInt32BE(0);
    if (this.#unread.length < length) return null;
    const packet = this.#unread.subarray(0, length);
    this.#unread = this.#unread.subarray(length);
    return packet;
  }
}

/**
 * A packet has its length, the number of the request, and the opcode. In a transaction the opcode
 * of the first part follows.
 */
function kindOf(packet: Buffer): RequestKind {
  const opcode = packet.readInt32BE(8);
  const first = opcode === OPCODES.multi ? packet.readInt32BE(12) : opcode;
  if (first === OPCODES.create) return "create";
  if (first === OPCODES.remove) return "removal";
  return first === OPCODES.setData || first === OPCODES.check ? "write" : "other";
}
