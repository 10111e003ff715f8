import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import type { Socket } from "node:net";

type Json = Record<string, unknown>;

/** What may come instead of an answer: from proxies, from other programs or from other versions. */
const SHAPES: Record<
  string,
  (body: string) => { readonly status?: number; readonly body: string }
> = {
  "a text": () => ({ body: '"OK"' }),
  null: () => ({ body: "null" }),
  "an answer in a list": (body) => ({ body: `[${body}]` }),
  "an empty object": () => ({ body: "{}" }),
  "an answer cut short": (body) => ({ body: body.slice(0, body.length / 2) }),
  "a page of a proxy": () => ({ body: "<html>permission denied, no leader, too large</html>" }),
  "an error without a word": () => ({ status: 500, body: '{"code":99,"message":7}' }),
  "no header": altered((answer) => ({ ...answer, header: undefined })),
  "no term": altered((answer) => ({ ...answer, header: { revision: "7" } })),
  "no responses": altered((answer) => ({ header: answer.header, succeeded: true })),
  "a short list": altered(shortened),
  "another lease": altered((answer) => ({ ...answer, ID: "soon", responses: "soon" })),
  "responses of another kind": altered((answer) => ({
    header: answer.header,
    succeeded: true,
    responses: [{ response_put: {} }],
    kvs: [{ key: 7 }],
  })),
};

export const GARBLED_SHAPES: readonly string[] = Object.keys(SHAPES);

/** A relay that passes all requests on, and can alter their answers. */
export class GarblingRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #shape: string | null = null;
  #streamLine: string | null = null;

  constructor(target: number) {
    this.#server = createServer((request, response) => {
      const { url = "", method = "POST", headers } = request;
      const onward = httpRequest({ host: "127.0.0.1", port: target, path: url, method, headers });
      onward.on("error", () => response.destroy());
      response.on("close", () => onward.destroy());
      onward.on("response", async (answer) => {
        if (url === "/v3/watch") {
          response.writeHead(answer.statusCode ?? 200);
          answer.on("data", (chunk) => response.write(this.#streamLine ?? chunk));
          answer.on("close", () => response.destroy());
          return;
        }
        const body = await bodyOf(answer);
        const garble = this.#shape === null ? null : SHAPES[this.#shape]!;
        const { status = answer.statusCode ?? 200, body: garbled } = garble?.(body) ?? { body };
        response.writeHead(status, { "Content-Length": Buffer.byteLength(garbled) }).end(garbled);
      });
      request.pipe(onward);
    });
    this.#server.on("connection", (socket) => {
      this.#sockets.add(socket);
      socket.on("close", () => this.#sockets.delete(socket));
    });
  }

  async start(): Promise<this> {
    await new Promise<void>((listening) => this.#server.listen(0, "127.0.0.1", listening));
    return this;
  }

  get endpoint(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("it is closed");
    return `127.0.0.1:${address.port}`;
  }

  answerWith(shape: string | null): void {
    this.#shape = shape;
  }

  /** Replaces all messages of watches by this line; null stops that. */
  streamWith(line: string | null): void {
    this.#streamLine = line;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((closed) => this.#server.close(closed));
  }
}

function altered(alter: (answer: Json) => Json) {
  return (body: string) => {
    const { result, ...answer } = JSON.parse(body) as Json;
    const changed = alter((result ?? answer) as Json);
    return { body: JSON.stringify(result === undefined ? changed : { result: changed }) };
  };
}

function shortened(answer: Json): Json {
  if (Array.isArray(answer.responses)) {
    return { ...answer, responses: answer.responses.slice(1) };
  }
  if (Array.isArray(answer.kvs)) return { ...answer, kvs: answer.kvs.slice(1) };
  return { ...answer, ID: undefined, header: [] };
}

async function bodyOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
