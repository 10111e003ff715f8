import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../connect.js";
import { memoryEngine } from "../../engines/memory/index.js";
import { UsageError } from "../../errors.js";
import { Locks } from "../../locks.js";
import { orMeant } from "./did-you-mean.js";

test("orMeant suggests the nearest known word, and nothing if all are far", () => {
  const known = ["ttlMs", "waitMs", "renewEveryMs", "tls", "idleMs"];
  for (const [word, meant] of [
    ["ttl", "ttlMs"],
    ["waitMS", "waitMs"],
    ["wait", "waitMs"],
    ["waitms", "waitMs"],
    ["renewEveryMS", "renewEveryMs"],
    ["renew_every_ms", "renewEveryMs"],
    ["tsl", "tls"],
    ["idle", "idleMs"],
  ] as const) {
    assert.equal(orMeant(word, known), `; did you mean "${meant}"?`);
  }
  for (const word of ["x", "", "patience", "zzz"]) assert.equal(orMeant(word, known), "");
});

test("the error for a misspelt option or URL parameter suggests the right one", async () => {
  await using locks = new Locks(memoryEngine());
  const asks = (attempt: Promise<unknown>, meant: string) =>
    assert.rejects(attempt, (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.ok(error.message.endsWith(`; did you mean "${meant}"?`), error.message);
      return true;
    });
  await asks(locks.acquire("a", { waitMS: 5 } as never), "waitMs");
  await asks(
    locks.once("a", { atMost: 5 } as never, () => 1),
    "atMostMs",
  );
  await asks(connect("memory:", { default: {} } as never), "defaults");
  await asks(connect("redis://127.0.0.1:1?prefx=a"), "prefix");
  await asks(connect("postgres://127.0.0.1:1/a?shema=b"), "schema");
});

for (const url of [
  "postgres://127.0.0.1:1/a?sslmode=require",
  "postgres://127.0.0.1:1/a?ssl=true",
  "mysql://127.0.0.1:1/a?ssl-mode=REQUIRED",
  "mysql://127.0.0.1:1/a?sslMode=REQUIRED",
  "redis://127.0.0.1:1?ssl=true",
  "zookeeper://127.0.0.1:1?ssl=true",
]) {
  test(`${url} is refused with the way to ask for TLS`, async () => {
    await assert.rejects(connect(url), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, /has no parameter "ssl.*; for TLS write tls=true$/);
      return true;
    });
  });
}
