import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { until } from "../../../test-support/until.fixture.js";
import type { PgOwnClient } from "../sessions/client.js";
import { describeWithPostgres } from "../test/support/test-server.fixture.js";
import { Notifications } from "./notifications.js";

describeWithPostgres({}, (it) => {
  it("notifications work from the moment when a late echo arrives", async (server) => {
    const received: string[] = [];
    let returned = 0;
    let tell: (() => Promise<unknown>) | null = null;
    const { port } = server.instance;
    const make = () => new pg.Client({ host: "127.0.0.1", user: "postgres", port });
    const notify = (channel: string, word: string) =>
      server.admin.query("SELECT pg_notify($1, $2)", [channel, word]);
    const notifications = new Notifications(make as () => PgOwnClient, "changes", {
      onPush: (message) => received.push(message),
      onChange: () => {},
      onResume: () => returned++,
      // A slow server: it accepts the word at once, and delivers it later.
      echo: async (channel, word) => {
        tell = () => notify(channel, word);
      },
    });
    try {
      await notifications.start();
      await sleep(1_200);
      assert.equal(notifications.isReceiving, false, "the echo has not arrived yet");
      await until("it has asked for an echo", () => tell);
      await tell!();
      await until("notifications arrive", () => notifications.isReceiving);
      assert.equal(returned, 1);
      await notify(notifications.channel, "a push");
      await until("a push arrives", () => received.length === 1);
    } finally {
      notifications.close();
    }
  });
});
