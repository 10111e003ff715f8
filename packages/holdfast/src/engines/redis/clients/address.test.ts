import assert from "node:assert/strict";
import { test } from "node:test";
import { parseEngineUrl } from "../../../url.js";
import { addressOf, showAddress } from "./address.js";

const read = (url: string) => addressOf(parseEngineUrl(url));

test("each scheme gives its topology and default port", () => {
  const hosts = (url: string) => read(url).hosts.map(({ host, port }) => `${host}:${port}`);
  assert.deepEqual(hosts("redis://a"), ["a:6379"]);
  assert.deepEqual(hosts("redis+sentinel://a,b:1/main"), ["a:26379", "b:1"]);
  assert.deepEqual(hosts("redis+cluster://a,b:1"), ["a:6379", "b:1"]);
  assert.equal(read("redis+sentinel://a/main/3").name, "main");
  assert.equal(read("redis+sentinel://a/main/3").database, 3);
  assert.equal(read("redis+cluster://a").topology, "cluster");
});

test("TLS is set by the scheme or by the parameter", () => {
  assert.equal(read("redis://a").tls, false);
  assert.equal(read("rediss://a").tls, true);
  assert.equal(read("redis+cluster://a?tls=true").tls, true);
  assert.throws(() => read("redis+cluster://a?tls=yes"), /tls is "true" or "false", got "yes"/);
});

test("a wrong URL is refused with an example or the rule", () => {
  assert.throws(() => read("redis://a,b"), /takes one host, like "redis:/);
  assert.throws(() => read("redis+cluster://"), /at least one host/);
  assert.throws(() => read("redis+sentinel://a"), /names what the Sentinels watch/);
  assert.throws(() => read("redis+cluster://a/3"), /database 0 only.*got "\/3"/);
  assert.throws(() => read("redis://a/x"), /database number.*got "\/x"/);
  assert.throws(() => read("redis+sentinel://a/main/1/2"), /database number/);
});

test("an address in a message shows no password", () => {
  const shown = showAddress(read("redis+sentinel://user:secret@a,b/main"));
  assert.equal(shown, '"main" by the Sentinels a:26379, b:26379');
});
