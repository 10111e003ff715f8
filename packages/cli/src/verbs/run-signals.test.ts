import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { startRedis } from "@holdfast/servers";
import { finish, holdfast, MAIN, Running, scratch, until } from "../test/holdfast.fixture.js";

/** Counts what it receives, and returns the count a little after the first. */
const counting = (afterMs: number) => `
  let count = 0;
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) {
    process.on(name, () => {
      console.log("got", name);
      if (count++ === 0) setTimeout(() => process.exit(40 + count), ${afterMs});
    });
  }
  setInterval(() => {}, 1_000);
  console.log(process.stdin.isTTY ? "up on a terminal" : "up");
`;
const COMMAND = [process.execPath, "-e", counting(300)];

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"] as const) {
  for (const whom of ["us alone", "the whole group"] as const) {
    test(`${signal} to ${whom} reaches the command once, and we outlive it`, async (t) => {
      const { url, locks } = await scratch(t);
      const running = holdfast(t, ["run", "a", "--url", url, "--", ...COMMAND]);
      await running.until("stdout", /up/);
      if (whom === "us alone") running.signal(signal);
      else running.signalGroup(signal);
      const { code, stdout } = await finish(running);
      assert.equal(stdout, `up\ngot ${signal}\n`);
      assert.equal(code, 41);
      assert.deepEqual((await locks.inspect("a")).holders, []);
    });
  }
}

test("a second Ctrl-C reaches the command as well", async (t) => {
  const command = [process.execPath, "-e", counting(5_000)];
  const running = holdfast(t, ["run", "a", "--url", "memory:", "--", ...command]);
  await running.until("stdout", /up/);
  running.signalGroup("SIGINT");
  await running.until("stdout", /got/);
  await new Promise((resolve) => setTimeout(resolve, 100));
  running.signal("SIGINT");
  assert.equal((await finish(running)).code, 42);
});

test("a command that dies of a forwarded signal gives 128 + n", async (t) => {
  const running = holdfast(t, [
    "run",
    "a",
    "--url",
    "memory:",
    "--",
    "sh",
    "-c",
    "echo up; exec cat",
  ]);
  await running.until("stdout", /up/);
  running.signal("SIGTERM");
  assert.equal(await running.ended, 143);
});

for (const [signal, expected] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  test(`${signal} while waiting ends at once with ${expected} and leaves no waiter`, async (t) => {
    const { url, locks } = await scratch(t);
    await using _held = await locks.acquire("a");
    const running = holdfast(t, ["run", "a", "--url", url, "--", "echo", "no"]);
    await running.until("stderr", /waiting/);
    const askedAt = performance.now();
    running.signal(signal);
    assert.equal(await running.ended, expected);
    assert.ok(performance.now() - askedAt < 4_000, "at once");
    assert.equal(running.stdout, "");
    assert.deepEqual((await locks.inspect("a")).waiters, []);
  });
}

const noScript = existsSync("/usr/bin/script") ? false : "script(1) of util-linux is not here";

/** util-linux's script gives the program a terminal, and types into it what it reads itself. */
function onTerminal(
  t: Parameters<typeof holdfast>[0],
  args: string[],
  env: NodeJS.ProcessEnv = {},
) {
  const quoted = [process.execPath, "--no-warnings", MAIN, ...args].map(
    (arg) => `'${arg.replaceAll("'", "'\\''")}'`,
  );
  // Undefined is unset: a CI's own wishes about colours are not what is tested.
  const plain = { CI: undefined, NO_COLOR: undefined, FORCE_COLOR: undefined, TMUX: undefined };
  const all = { ...plain, NODE_DISABLE_COLORS: undefined, TERM: "xterm", SHELL: "/bin/sh", ...env };
  return new Running(t, "script", ["-qfec", `exec ${quoted.join(" ")}`, "/dev/null"], all);
}

test("Ctrl-C on a terminal reaches the command once", { skip: noScript }, async (t) => {
  const { url } = await scratch(t);
  const running = onTerminal(t, ["run", "a", "--url", url, "--", ...COMMAND]);
  await running.until("stdout", /up on a terminal/);
  running.type("\x03");
  assert.equal(await running.ended, 41);
  assert.equal(running.stdout.match(/got SIGINT/g)?.length, 1);
});

test("on a terminal the wait is one line in colour, and Ctrl-C ends it", {
  skip: noScript,
}, async (t) => {
  const { url, locks } = await scratch(t);
  await using _held = await locks.acquire("a");
  const running = onTerminal(t, ["run", "a", "--url", url, "--", "true"]);
  await running.until("stdout", /held by the test[\s\S]*held by the test/);
  assert.doesNotMatch(running.stdout, /\n/, "one line, written over");
  assert.ok(running.stdout.includes("\x1b[2m"));
  running.type("\x03");
  assert.equal(await running.ended, 130);
  await until(
    async () => (await locks.inspect("a")).waiters.length === 0,
    () => "the waiter to be gone",
  );
});

test("NO_COLOR is respected on a terminal", { skip: noScript }, async (t) => {
  const { url, locks } = await scratch(t);
  await using _held = await locks.acquire("a");
  const args = ["run", "a", "--url", url, "--wait", "3s", "--", "true"];
  const running = onTerminal(t, args, { NO_COLOR: "1" });
  assert.equal(await running.ended, 75);
  assert.match(running.stdout, /held by the test/);
  assert.ok(!running.stdout.includes("\x1b[2m"));
});

for (const wait of ["0s", "1s"]) {
  test(`--wait ${wait} bounds the connecting too, and says where nobody answers`, async (t) => {
    const { url } = await muteServer(t);
    const args = ["run", "a", "--url", url, "--wait", wait, "--", "echo", "no"];
    const running = holdfast(t, args);
    assert.equal(await running.ended, 69);
    const says = `holdfast: no connection to ${url} within 1000 ms: it does not answer\n`;
    assert.equal(running.stderr, says);
    assert.equal(running.stdout, "");
  });
}

test("a short --wait says where the connection was refused, and no password", async (t) => {
  const url = `redis://me:secret@127.0.0.1:${await freePort()}`;
  // A busy machine may take longer than a second to try at all, and then that is what it says.
  for (const [wait, why] of [
    ["0s", /: (connect ECONNREFUSED.*|it does not answer)\n$/],
    ["8s", /: connect ECONNREFUSED.*\n$/],
  ] as const) {
    const args = ["run", "a", "--url", url, "--wait", wait, "--", "echo", "no"];
    const { code, stderr } = await finish(holdfast(t, args));
    assert.equal(code, 69);
    assert.match(stderr, /^holdfast: no .* redis:\/\/127\.0\.0\.1:\d+/m);
    assert.match(stderr, why);
    assert.doesNotMatch(stderr, /secret|me:/);
  }
});

for (const waitArgs of [[], ["--wait", "50s"]]) {
  const how = waitArgs.length === 0 ? "by default" : "within --wait";
  test(`run waits for a server that starts later, ${how}, and says so`, async (t) => {
    const port = await freePort();
    const url = `redis://127.0.0.1:${port}`;
    const args = ["run", "a", "--url", url, ...waitArgs, "--", "echo", "yes"];
    const running = holdfast(t, args);
    await running.until("stderr", /no Redis at .*ECONNREFUSED.*; trying again\n/);
    await using _server = await startRedis({ port });
    const { code, stdout } = await finish(running);
    assert.deepEqual([code, stdout], [0, "yes\n"]);
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** Takes connections and never says a word: connect gives up after five seconds, with 69. */
async function muteServer(t: TestContext) {
  const sockets: Socket[] = [];
  const mute = createServer((socket) => sockets.push(socket)).listen(0, "127.0.0.1");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    mute.close();
  });
  await once(mute, "listening");
  const { port } = mute.address() as { port: number };
  return { mute, url: `redis://127.0.0.1:${port}` };
}

test("Ctrl-C on a terminal is heard while the connection is being made", {
  skip: noScript,
}, async (t) => {
  const { mute, url } = await muteServer(t);
  const running = onTerminal(t, ["run", "a", "--url", url, "--", "echo", "no"]);
  await once(mute, "connection");
  running.type("\x03");
  assert.equal(await running.ended, 130);
  assert.doesNotMatch(running.stdout, /no/);
});

test("a signal after the command has ended gives up on a backend that does not answer", async (t) => {
  await using server = await startRedis();
  const args = ["run", "a", "--url", server.url, "--", "sh", "-c", "echo up; cat; echo done"];
  const running = holdfast(t, args);
  await running.until("stdout", /up/);
  server.pause();
  running.endInput();
  await running.until("stdout", /done/);
  // The command's end is noticed a moment after its last word.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  running.signal("SIGINT");
  assert.equal(await running.ended, 0);
  assert.match(running.stderr, /"a" could not be released, .*: SIGINT came first/);
  server.resume();
});
