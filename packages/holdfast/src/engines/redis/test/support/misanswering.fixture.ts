import type { RedisClient } from "../../clients/connection.js";

type Alter = (answer: unknown) => unknown;
type Optioned = { withCommandOptions(options: unknown): object };
type Answers = (...words: never[]) => Promise<unknown>;
type Sends = { sendCommand: Answers };

/** Wrong answers that a client can give, each made from the right one. */
export const SHAPES: Readonly<Record<string, Alter>> = {
  QUEUED: () => "QUEUED",
  "a string for a list": () => "OK",
  "a short list": (answer) => (Array.isArray(answer) ? answer.slice(0, -1) : []),
  "a long list": (answer) => (Array.isArray(answer) ? [...answer, 1] : [answer, answer]),
  "a Buffer": inBuffers,
  null: () => null,
  nothing: () => undefined,
  "another number": () => 7,
  "another number as text": () => "7",
  "an error among the answers": (answer) =>
    Array.isArray(answer) ? answer.map(() => new Error("OOM")) : [new Error("OOM")],
};

/** Changes every answer of this client, on each of its connections. */
export function misanswering(client: RedisClient, alter: Alter): RedisClient {
  const through =
    (ask: Answers): Answers =>
    async (...words) =>
      alter(await ask(...words));
  const altered = <T extends object>(one: T, verb: string): T =>
    Object.create(one, {
      [verb]: { value: through((one as Record<string, Answers>)[verb]!.bind(one)) },
    });
  const also = (name: string, make: (made: object) => object) => {
    const from = (client as unknown as Record<string, (...of: unknown[]) => unknown>)[name]!;
    Object.assign(client, {
      [name]: (...of: unknown[]) => {
        const made = from.apply(client, of);
        return made instanceof Promise ? made.then((it: object) => make(it)) : make(made as object);
      },
    });
  };
  if ("withCommandOptions" in client) {
    const plain = (made: object) => altered(made, "sendCommand");
    also("withCommandOptions", plain);
    if ("nodeClient" in client) {
      also("nodeClient", (node) =>
        Object.create(node, {
          withCommandOptions: {
            value: (options: unknown) => plain((node as Optioned).withCommandOptions(options)),
          },
        }),
      );
    } else {
      // The connection that waits for replicas.
      also("duplicate", (copy) => {
        const own = (copy as Optioned).withCommandOptions.bind(copy);
        return Object.assign(copy, {
          withCommandOptions: (options: unknown) => plain(own(options)),
        });
      });
    }
    return client;
  }
  if ("nodes" in client) {
    also("nodes", (nodes) => (nodes as object[]).map((node) => altered(node, "call")));
    const { evalsha, eval: inFull } = client;
    return Object.assign(client, {
      evalsha: through(evalsha.bind(client) as Answers),
      eval: through(inFull.bind(client) as Answers),
    });
  }
  also("duplicate", (copy) => {
    const send = (copy as Sends).sendCommand.bind(copy);
    return Object.assign(copy, { sendCommand: through(send) });
  });
  const send = (client as unknown as Sends).sendCommand.bind(client);
  return Object.assign(client, { sendCommand: through(send) });
}

function inBuffers(answer: unknown): unknown {
  if (Array.isArray(answer)) return answer.map(inBuffers);
  return Buffer.from(String(answer));
}
