import { type Socket, connect as tcpConnect } from "node:net";
import { type ConnectionOptions, connect as tlsConnect } from "node:tls";
import type { Host } from "../../../url.js";

const DEFAULT_PORT = 2181;
// A listing of a hundred thousand names fits. Anything larger is not a packet of this protocol.
const LARGEST_PACKET = 16 * 1024 * 1024;

/** For tls.connect: `ca`, `cert`, `key`, `servername`, `rejectUnauthorized` and the like. */
export type TlsOptions = ConnectionOptions;

export interface ConnectionEvents {
  onPacket(packet: Buffer): void;
  /** Called once, whatever ended the connection. */
  onEnd(error: Error): void;
}

/** One socket to one server, which sends and receives whole packets. */
export class Connection {
  readonly #socket: Socket;
  readonly #events: ConnectionEvents;
  #unread: Buffer[] = [];
  #unreadBytes = 0;
  #wanted = 4;
  #outgoing: Buffer[] = [];
  #ended = false;

  constructor(host: Host, tls: TlsOptions | null, hello: Buffer, events: ConnectionEvents) {
    this.#events = events;
    const address = { host: host.host, port: host.port ?? DEFAULT_PORT };
    this.#socket = tls === null ? tcpConnect(address) : tlsConnect({ ...address, ...tls });
    this.#socket.setNoDelay(true);
    // A held lease alone does not keep the process alive. A call under way has a timer that does.
    this.#socket.unref();
    this.#socket.on("data", (bytes) => this.#take(bytes));
    this.#socket.on("error", (error) => this.end(error));
    this.#socket.on("close", () => this.end(new Error("the server closed the connection")));
    this.#socket.write(hello);
  }

  /**
   * Packets of one turn of the event loop, and of the next tick, leave in one write: a write can
   * wake the server, which may then take the processor from us for as long as it likes.
   */
  send(packet: Buffer): void {
    if (this.#outgoing.length === 0) process.nextTick(() => queueMicrotask(() => this.#flush()));
    this.#outgoing.push(packet);
  }

  end(error: Error): void {
    if (this.#ended) return;
    this.#flush();
    this.#ended = true;
    this.#socket.destroy();
    this.#events.onEnd(error);
  }

  #flush(): void {
    const packets = this.#outgoing;
    this.#outgoing = [];
    if (packets.length > 0 && !this.#ended) this.#socket.write(Buffer.concat(packets));
  }

  #take(bytes: Buffer): void {
    this.#unread.push(bytes);
    this.#unreadBytes += bytes.length;
    if (this.#unreadBytes < this.#wanted) return;
    let all = Buffer.concat(this.#unread);
    try {
      while (!this.#ended && all.length >= 4) {
        const length = all.readInt32BE(0);
        if (length < 0 || length > LARGEST_PACKET) {
          throw new RangeError(`a packet of ${length} bytes is not one of ZooKeeper's`);
        }
        this.#wanted = 4 + length;
        if (all.length < this.#wanted) break;
        this.#events.onPacket(all.subarray(4, this.#wanted));
        all = all.subarray(this.#wanted);
        this.#wanted = 4;
      }
    } catch (error) {
      this.end(error as Error);
    }
    this.#unread = [all];
    this.#unreadBytes = all.length;
  }
}
