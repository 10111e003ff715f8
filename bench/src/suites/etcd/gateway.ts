import { Agent, request } from "node:http";

const MAX_SOCKETS = 256;

/**
 * Keeps its connections open. Each carries one call at a time, which is what the gateway allows.
 */
export class Gateway {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS, noDelay: true });
  readonly #host: string;

  /** `host` with its port. */
  constructor(host: string) {
    this.#host = host;
  }

  async call<T = unknown>(path: string, order: object): Promise<T> {
    return JSON.parse(await this.#fetch("POST", path, JSON.stringify(order))) as T;
  }

  page(path: string): Promise<string> {
    return this.#fetch("GET", path, "");
  }

  close(): void {
    this.#agent.destroy();
  }

  #fetch(method: string, path: string, body: string): Promise<string> {
    const headers = { "content-length": Buffer.byteLength(body) };
    return new Promise((resolve, reject) => {
      const options = { method, headers, agent: this.#agent };
      const asked = request(`http://${this.#host}${path}`, options, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        response.on("error", reject);
        response.on("end", () => {
          if (response.statusCode === 200) resolve(text);
          else reject(new Error(`etcd answers ${path} with ${response.statusCode}: ${text}`));
        });
      });
      asked.on("error", reject);
      asked.end(body);
    });
  }
}

export function base64(plain: string): string {
  return Buffer.from(plain).toString("base64");
}
