import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../connect.js";
import { UsageError } from "../errors.js";
import { parseEngineUrl, redact, refuseUnknownParams } from "../url.js";

test("parseEngineUrl splits a URL into its parts", () => {
  const url = parseEngineUrl("REDIS+Sentinel://u%40x:p%3Aw:d@h1:1,h2/my%20name?tls=true&a=b=c");
  assert.deepEqual(
    { ...url, params: [...url.params] },
    {
      scheme: "redis+sentinel",
      username: "u@x",
      password: "p:w:d",
      hosts: [
        { host: "h1", port: 1 },
        { host: "h2", port: null },
      ],
      path: "/my name",
      params: [
        ["tls", "true"],
        ["a", "b=c"],
      ],
    },
  );
});

test("sqlite: keeps its path as it is, relative, absolute or none", () => {
  assert.equal(parseEngineUrl("sqlite:locks.db").path, "locks.db");
  assert.equal(parseEngineUrl("sqlite:/var/lib/locks.db").path, "/var/lib/locks.db");
  assert.equal(parseEngineUrl("sqlite:///var/lib/locks.db").path, "/var/lib/locks.db");
  assert.equal(parseEngineUrl("sqlite:").path, "");
  assert.deepEqual(parseEngineUrl("sqlite:a,b.db").hosts, []);
});

test("hosts may be IPv6, with and without a port", () => {
  assert.deepEqual(parseEngineUrl("etcd://[::1]:2379,[fe80::2],10.0.0.1:80").hosts, [
    { host: "::1", port: 2379 },
    { host: "fe80::2", port: null },
    { host: "10.0.0.1", port: 80 },
  ]);
});

test("credentials may be a user alone, a password alone, or a password with an @", () => {
  const who = (text: string) => {
    const { username, password } = parseEngineUrl(text);
    return [username, password];
  };
  assert.deepEqual(who("redis://me@h"), ["me", null]);
  assert.deepEqual(who("redis://:pw@h"), [null, "pw"]);
  assert.deepEqual(who("redis://me:p@ss@h"), ["me", "p@ss"]);
  assert.deepEqual(who("redis://h"), [null, null]);
});

for (const text of [
  "",
  "no-scheme",
  "://h",
  "redis://h1,,h2",
  "redis://h:0",
  "redis://h:65536",
  "redis://h:port",
  "redis://::1",
  "redis://[::1",
  "redis://h?a=1&a=2",
  "redis://h/%zz",
  "redis://h#fragment",
]) {
  test(`${JSON.stringify(text)} is refused with UsageError`, () => {
    assert.throws(() => parseEngineUrl(text), UsageError);
  });
}

const SECRET = "s3cr3t";
// A scheme that no engine will ever have, so that nothing connects.
const LEAKY = [
  `nosuch://me:${SECRET}@h`,
  `nosuch://:${SECRET}@h`,
  `nosuch://me:a@${SECRET}@h`,
  `nosuch://me@corp:${SECRET}@h`,
  `nosuch://me@corp:${SECRET}@h:port`,
  `nosuch://me@corp:x/${SECRET}@h`,
  `nosuch://me:${SECRET}/x@h`,
  `nosuch://me:x/${SECRET}@h`,
  `nosuch://me:x?${SECRET}@h`,
  `nosuch://me:x#${SECRET}@h`,
  `nosuch://me:${SECRET}%zz@h`,
  `nosuch://me:${SECRET}@h:port`,
  `nosuch://me:${SECRET}@h1,,h2`,
  `nosuch://h?password=${SECRET}`,
  `nosuch://h?x=1&PassWord=${SECRET}#f`,
  `nosuch://h?token=${SECRET}&x=%zz`,
  ` nosuch://me:${SECRET}@h`,
  `postgres//u:${SECRET}@h/db`,
  `postgres:/u:${SECRET}@h/db`,
  `redis/:${SECRET}@h`,
  `:${SECRET}@h`,
  `${SECRET}@h`,
];

for (const text of LEAKY) {
  test(`no password of ${text.replaceAll(SECRET, "***")} reaches redact or a message`, async () => {
    assert.ok(!redact(text).includes(SECRET), redact(text));
    const error = await connect(text).then(
      () => assert.fail("there is no such engine"),
      (e: Error) => e,
    );
    for (let at: unknown = error; at instanceof Error; at = at.cause) {
      assert.ok(!`${at.message}${at.stack}`.includes(SECRET), at.message);
    }
  });
}

test("redact keeps what is no secret", () => {
  assert.equal(redact("redis://me:pw@h1,h2/3?tls=true"), "redis://me:***@h1,h2/3?tls=true");
  assert.equal(redact("sqlite:/a/b@c.db"), "sqlite:/a/b@c.db");
  assert.equal(redact("redis://me@h"), "redis://me@h");
});

test("an unknown parameter is refused, and the known ones are named", () => {
  const url = parseEngineUrl("redis://h?prefx=a");
  assert.throws(() => refuseUnknownParams(url, ["prefix", "tls"]), /"prefx".*prefix, tls/);
  assert.throws(() => refuseUnknownParams(url, []), /none/);
  refuseUnknownParams(url, ["prefx"]);
});

test("the errors for a wrong port and a wrong host differ, and show no secret", () => {
  const port = /^a port is a number from 1 to 65535, got "/;
  for (const [text, says] of [
    ["redis://h:0", port],
    ["redis://h:65536", port],
    ["redis://h:1234567", port],
    ["redis://h:99999/a:b@c", port],
    ["redis://h:port", /^a host looks like /],
  ] as const) {
    assert.throws(
      () => parseEngineUrl(text),
      (error) => error instanceof UsageError && says.test(error.message),
    );
  }
  // The password contains a "/", so its beginning is in the place of a port.
  assert.throws(
    () => parseEngineUrl("redis://me:123456/x@h"),
    (error) => error instanceof UsageError && !/123456/.test(error.message),
  );
});
