import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../connect.js";
import { UnsupportedError, UsageError } from "../../errors.js";
import { init } from "../../init.js";

const MEANT = {
  "postgress://app:secret@h/d": '"postgres://…"',
  "redsi://h": '"redis://…"',
  "rediss+cluster://h": '"redis+cluster://…"',
  "mariadb://h/d": '"mysql://…"',
  "zk://h": '"zookeeper://…"',
  "valkey://h": '"redis://…"',
  "sqlite3:locks.db": '"sqlite:…"',
  "file:locks.db": '"sqlite:…"',
  "localhost:6379": '"redis://localhost:6379"',
  "db.example:5432/orders": '"postgres://db.example:5432/…"',
  "127.0.0.1:2379": '"etcd://127.0.0.1:2379"',
  "[::1]:6379": '"redis://[::1]:6379"',
  "localhost:4711": '"redis://localhost:4711"',
  "redis:127.0.0.1": '"redis://127.0.0.1"',
  "redis:127.0.0.1:6379": '"redis://127.0.0.1:6379"',
  "postgres:db.example/orders": '"postgres://…"',
  "etcd:app:secret@h": '"etcd://…"',
  "locks.db": '"sqlite:locks.db"',
  "./data/locks.sqlite": '"sqlite:./data/locks.sqlite"',
};

for (const [url, meant] of Object.entries(MEANT)) {
  test(`${url} is refused with the suggestion ${meant}`, async () => {
    for (const use of [connect, init]) {
      await assert.rejects(use(url), (error: Error) => {
        assert.ok(error instanceof UnsupportedError || error instanceof UsageError);
        assert.ok(error.message.includes(`did you mean ${meant}`), error.message);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      });
    }
  });
}

test("a URL that is near to nothing gets no suggestion, and no secret is shown", async () => {
  for (const url of ["consul://h", "app:secret@h:6379", "secret", "h:6379:secret"]) {
    await assert.rejects(connect(url), (error: Error) => {
      assert.doesNotMatch(error.message, /did you mean/);
      return true;
    });
  }
});
