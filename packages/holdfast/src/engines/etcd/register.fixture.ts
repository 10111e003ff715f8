import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { FencedOutError } from "../../errors.js";

export interface Write {
  readonly token: bigint;
  readonly value: number;
}

/** One number in this process, which refuses whoever comes with a smaller token than it has seen. */
export class Register implements AsyncDisposable {
  readonly writes: Write[] = [];
  refused = 0;
  readonly #server: Server;
  #seen = 0n;

  private constructor() {
    this.#server = createServer((request, response) => {
      const { searchParams } = new URL(request.url ?? "/", "http://register");
      const token = BigInt(searchParams.get("token") ?? 0);
      const value = searchParams.get("value");
      // Reading raises the mark too: else a stale writer could slip in between a read and its write.
      if (token < this.#seen) {
        this.refused++;
        response.writeHead(409).end(String(this.#seen));
        return;
      }
      this.#seen = token;
      if (value !== null) this.writes.push({ token, value: Number(value) });
      response.end(String(this.writes.at(-1)?.value ?? 0));
    });
  }

  static async start(): Promise<Register> {
    const register = new Register();
    await new Promise<void>((go) => register.#server.listen(0, "127.0.0.1", go));
    return register;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((closed) => this.#server.close(closed));
  }
}

/** For other processes: reads, or writes where a value is given. */
export async function ask(port: number, token: bigint, value?: number): Promise<number> {
  const what = value === undefined ? "" : `&value=${value}`;
  const response = await fetch(`http://127.0.0.1:${port}/?token=${token}${what}`);
  const text = await response.text();
  if (response.status === 409) throw new FencedOutError(`token ${token} came after ${text}`, {});
  return Number(text);
}
