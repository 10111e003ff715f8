import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePorts } from "./ports.js";

test("freePorts gives different ports, each of which can be listened on", async () => {
  const ports = await freePorts(20);
  assert.equal(new Set(ports).size, 20);
  for (const port of ports) {
    const server = createServer();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, "127.0.0.1", resolve);
    });
    await new Promise((resolve) => server.close(resolve));
  }
});
