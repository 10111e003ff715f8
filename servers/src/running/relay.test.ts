import assert from "node:assert/strict";
import { createConnection, createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Relay } from "./relay.js";

// A server that repeats everything that it receives.
const heard: string[] = [];
const server = createServer((socket) => {
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    heard.push(String(bytes));
    socket.write(`${bytes}${bytes}`);
  });
});
let port: number;

before(async () => {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  port = (server.address() as { port: number }).port;
});
after(() => server.close());

test("a relay holds requests back and delivers them even after their sender has closed", async () => {
  await using relay = await Relay.start(port);
  const { socket, said } = await dial(relay.port);
  const stays = await dial(relay.port);
  relay.hold();
  socket.write("x");
  stays.socket.write("y");
  await sleep(50);
  assert.equal(heard.includes("x") || heard.includes("y"), false);
  socket.destroy();
  await sleep(50);
  relay.deliver();
  // What was sent arrives although its sender has closed.
  await until(() => heard.includes("x") && stays.said() === "yy");
  assert.equal(said(), "");
  stays.socket.write("z");
  // Everything passes again.
  await until(() => stays.said() === "yyzz");
  stays.socket.destroy();
});

test("a relay passes data on, hangs, continues, loses answers and cuts", async () => {
  await using relay = await Relay.start(port);
  const { socket, said } = await dial(relay.port);
  socket.write("a");
  await until(() => said() === "aa");
  relay.hang();
  socket.write("b");
  await sleep(50);
  assert.deepEqual([heard.at(-1), said()], ["a", "aa"]);
  relay.mend();
  await until(() => heard.at(-1) === "b" && said() === "aabb");
  relay.mute();
  socket.write("c");
  await until(() => heard.at(-1) === "c");
  await sleep(50);
  assert.equal(said(), "aabb");
  relay.cut();
  await until(() => socket.destroyed);
  const refused = await dial(relay.port);
  await until(() => refused.socket.destroyed);
  relay.mend();
  const { socket: again, said: saidAgain } = await dial(relay.port);
  again.write("d");
  await until(() => saidAgain() === "dd");
});

async function until(check: () => boolean): Promise<void> {
  for (let looks = 0; !check(); looks++) {
    assert.ok(looks < 2_000, `never so: ${check}`);
    await sleep(10);
  }
}

async function dial(to: number): Promise<{ socket: Socket; said: () => string }> {
  const socket = createConnection(to, "127.0.0.1");
  let said = "";
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    said += String(bytes);
  });
  await new Promise((connected) => socket.once("connect", connected).once("close", connected));
  return { socket, said: () => said };
}
