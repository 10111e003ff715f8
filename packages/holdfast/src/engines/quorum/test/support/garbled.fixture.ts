import type { Redis } from "ioredis";
import type { Misanswered } from "../../../../conformance/index.js";

type Reply = readonly unknown[];

/** Wrong shapes of a reply. A SCAN reply has no answers inside, so some shapes give null for it. */
const SHAPES: Record<string, (reply: Reply, isScan: boolean) => unknown> = {
  "a string for a list": () => "OK",
  QUEUED: () => "QUEUED",
  null: () => null,
  "a number": () => 1,
  "an empty list": () => [],
  "a Buffer": (reply) => Buffer.from(JSON.stringify(reply)),
  "a short list": (reply) => reply.slice(0, -1),
  "a long list": (reply) => [...reply, reply.at(-1)],
  "short answers": (reply, isScan) =>
    isScan ? null : each(reply, (answer) => answer.slice(0, -1)),
  "long answers": (reply, isScan) => (isScan ? null : each(reply, (answer) => [...answer, 0])),
  "words for answers": (reply, isScan) => (isScan ? null : each(reply, ([word]) => word)),
  "nobody's answers": (reply, isScan) => (isScan ? null : each(reply, () => ["certified"])),
  "Buffers for words": (reply, isScan) =>
    isScan ? null : each(reply, ([word, ...rest]) => [Buffer.from(String(word)), ...rest]),
};

const GARBLED = new Set(["evalsha", "eval", "scan"]);

/** Alters the replies to scripts and scans of these clients. */
export function garbling(clients: readonly Redis[]): Omit<Misanswered, "engine"> {
  let shape: string | null = null;
  for (const client of clients) {
    const send = client.sendCommand.bind(client);
    client.sendCommand = (command, stream) => {
      const answer = send(command, stream) as Promise<unknown>;
      const name = command.name.toLowerCase();
      if (shape === null || !GARBLED.has(name)) return answer;
      const garble = SHAPES[shape]!;
      const isScan = name === "scan";
      return answer.then((reply) => garble(reply as Reply, isScan));
    };
  }
  return {
    shapes: Object.keys(SHAPES),
    answerWith: (wrong) => {
      shape = wrong;
    },
  };
}

function each([us, ...answers]: Reply, change: (answer: Reply) => unknown): unknown {
  return [us, ...answers.map((answer) => change(answer as Reply))];
}
