// Errors and events show no grantId and no password, at any depth. Clients put the command that
// failed, with all its arguments, into their errors.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { inspect } from "node:util";
import { startRedis } from "@holdfast/servers";
import { connect } from "../../../../connect.js";
import { channels, type EventName } from "../../../../events.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { until } from "../../../../test-support/until.fixture.js";
import { CLIENT_NAMES, RedisTestServer } from "../support/test-server.fixture.js";

const PASSWORD = "s3cret-pass";
const USER = ["app", PASSWORD] as const;
const ALL = ["~*", "&*", "+@all"];
const EVENTS = Object.keys(channels) as EventName[];

let told = "";
const listen = (message: unknown) => {
  told += inspectAll(message);
};

describe("secrets", { concurrency: 4 }, () => {
  before(() => {
    for (const name of EVENTS) channels[name].subscribe(listen);
  });
  after(() => {
    for (const name of EVENTS) channels[name].unsubscribe(listen);
  });

  for (const client of CLIENT_NAMES) {
    test(`errors and events of a refused command show no grantId (${client})`, async () => {
      await using redis = await RedisTestServer.start();
      const may = (...rules: string[]) =>
        redis.admin.call("ACL", "SETUSER", "app", "reset", "on", `>${PASSWORD}`, ...rules);
      await may(...ALL);
      const locks = redis.locks({ client, user: USER });
      const resource = `held through ${client}`;
      const lease = await locks.acquire(resource, { renewEveryMs: 100 });
      const grantId = (await redis.admin.get(`holdfast:${resource}`))!.split(":")[2]!;
      await may("~other:*", "&*", "+@all");
      await until("an event tells of it", () => told.includes(resource), 20_000);
      const errors: unknown[] = [];
      for (const act of [
        () => lease.renew(),
        () => lease.release(),
        () => locks.inspect(resource),
      ]) {
        await act().then(
          () => assert.fail("it was not refused"),
          (error: unknown) => errors.push(error),
        );
      }
      assertHidden(grantId, ...errors);
    });

    test(`errors and events of a refused subscription show no secret (${client})`, async () => {
      await using redis = await RedisTestServer.start();
      const may = (...rules: string[]) =>
        redis.admin.call("ACL", "SETUSER", "app", "reset", "on", `>${PASSWORD}`, ...rules);
      await may("~*", "resetchannels", "+@all");
      const engine = redis.engine({ client, user: USER });
      const asked = claim("a");
      await engine.tryAcquire(asked, now());
      await until("an event tells of it", () => told.includes("push"), 20_000);
      assertHidden(asked.grantId);
    });
  }

  for (const scheme of ["redis", "redis+cluster", "redis+sentinel"]) {
    test(`errors of a wrong password do not show it (${scheme})`, async () => {
      await using redis = await RedisTestServer.start();
      await redis.admin.call("ACL", "SETUSER", "app", "on", ">another", ...ALL);
      const path = scheme === "redis+sentinel" ? "/main" : "";
      const url = `${scheme}://app:${PASSWORD}@127.0.0.1:${redis.server.port}${path}`;
      const error = await connect(url).then(
        () => assert.fail("the wrong password was accepted"),
        (refusal: unknown) => refusal,
      );
      assertHidden("", error);
    });
  }

  test("errors of a server that does not know a command do not quote its arguments", async () => {
    // Servers before Redis 6 do not know HELLO, with which clients send the password.
    const server = await startRedis({ args: ["--rename-command", "HELLO", ""] });
    const error = await connect(`redis://:${PASSWORD}@127.0.0.1:${server.port}`).then(
      (locks) => locks.close(),
      (refusal: unknown) => refusal,
    );
    await server.stop();
    assertHidden("", error);
  });
});

function assertHidden(grantId: string, ...errors: unknown[]): void {
  for (const shown of [...errors.map(inspectAll), told]) {
    for (const secret of [PASSWORD, grantId].filter((text) => text !== "")) {
      assert.ok(!shown.includes(secret), `it is shown: ${shown}`);
    }
  }
}

function inspectAll(value: unknown): string {
  return inspect(value, { depth: 20, showHidden: true, getters: true });
}
