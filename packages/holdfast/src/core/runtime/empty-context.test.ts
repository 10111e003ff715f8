import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { systemClock } from "./clock.js";

test("a timer calls back without its creator's async context", async () => {
  const storage = new AsyncLocalStorage<string>();
  const seen = await storage.run("request", () => {
    return new Promise<string | undefined>((resolve) => {
      systemClock.timer(1, () => resolve(storage.getStore()), true);
    });
  });
  assert.equal(seen, undefined);
});

test("the async context of the first import is neither kept alive nor seen by events", async () => {
  // Before version 24, Node itself keeps the context of every import, even of an empty module.
  // Every version keeps the context in which it loads one of its own modules.
  const program = `
    import { AsyncLocalStorage } from "node:async_hooks";
    import "node:crypto";
    import "node:diagnostics_channel";
    import "node:os";
    import "node:util";
    const storage = new AsyncLocalStorage();
    function importedBy(request, what) {
      return storage.run(request, () => import(what)).then((it) => [it, new WeakRef(request)]);
    }
    const url = ${JSON.stringify(new URL("../../index.js", import.meta.url).href)};
    const [{ channels, connect }, ours] = await importedBy({ of: "a request" }, url);
    const [, plain] = await importedBy({ of: "another" }, "data:text/javascript,export{}");
    const locks = await connect("memory:");
    const renewed = new Promise((go) => channels.renewed.subscribe(() => go(storage.getStore())));
    const lease = await locks.acquire("a", { ttlMs: 30_000, renewEveryMs: 20 });
    const keep = setTimeout(() => {}, 50_000);
    console.log(String(await renewed));
    clearTimeout(keep);
    await locks.close();
    for (let tries = 0; tries < 20; tries++) {
      await new Promise((go) => setTimeout(go, 5));
      globalThis.gc();
    }
    const isKept = (request) => request.deref() !== undefined;
    console.log(isKept(ours) && !isKept(plain) ? "kept by us" : "not kept by us");
  `;
  const args = ["--expose-gc", "--input-type=module", "-e", program];
  const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 });
  assert.equal(stdout, "undefined\nnot kept by us\n");
});
