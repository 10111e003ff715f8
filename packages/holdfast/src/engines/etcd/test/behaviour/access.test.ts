// Users and their rights, TLS, and what a URL may say.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startEtcd } from "@holdfast/servers";
import { connect } from "../../../../connect.js";
import { UsageError } from "../../../../errors.js";
import type { Locks } from "../../../../locks.js";
import { lossOf } from "../../../../test-support/loss.fixture.js";
import { parseEngineUrl } from "../../../../url.js";
import { etcdEngine } from "../../index.js";
import { resolveEtcd, termsFromUrl } from "../../options.js";
import { HoldingRelay } from "../support/holding-relay.fixture.js";
import { EtcdTestServer } from "../support/test-server.fixture.js";

const PAGE = new URL("../../../../../../../docs/engines/etcd.md", import.meta.url);
const SECRET = "a password";

/** Runs the commands of the page, so that the page cannot list too few rights. */
async function enableUsers(etcd: EtcdTestServer): Promise<void> {
  const block = /```sh\n(etcdctl role add[\s\S]*?)```/.exec(readFileSync(PAGE, "utf8"))?.[1] ?? "";
  const lines = block.split("\n").filter((line) => line.startsWith("etcdctl "));
  assert.ok(lines.length >= 3, "the page lists the rights");
  for (const line of lines) {
    const words = line.split(" ").slice(1);
    await etcd.ctl(...words.map((word) => word.replace("app:secret", `app:${SECRET}`)));
  }
  await etcd.ctl("user", "add", `nobody:${SECRET}`);
  await etcd.ctl("user", "add", `root:${SECRET}`);
  await etcd.ctl("user", "grant-role", "root", "root");
  await etcd.ctl("auth", "enable");
}

test("everything works for a user that has only the documented rights", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  await enableUsers(etcd);
  const user = { username: "app", password: SECRET };
  const [a, b] = [etcd.locks(user), etcd.locks(user)];
  await useEveryVerb(etcd, a, b);

  // A restarted server has forgotten all tokens.
  const lease = await a.acquire("restart", { ttlMs: 30_000 });
  await server.restart();
  await lease.renew();
  assert.equal(await b.tryAcquire("restart"), null);
  assert.equal(await lease.release(), "released");

  const url = `etcd://app:${encodeURIComponent(SECRET)}@127.0.0.1:${server.port}`;
  const byUrl = await connect(url);
  await byUrl.run("a", () => {});
  await byUrl.close();

  const refused = { code: "ENGINE", effect: "none", retryable: false } as const;
  const nobody = etcd.locks({ ...user, username: "nobody" });
  await assert.rejects(nobody.acquire("a"), {
    ...refused,
    message: /may not.*docs\/engines\/etcd/,
  });
  const elsewhere = etcd.locks({ ...user, prefix: "elsewhere/" });
  await assert.rejects(elsewhere.acquire("a"), { ...refused, message: /may not/ });
  const stranger = etcd.locks();
  await assert.rejects(stranger.acquire("a"), { ...refused, message: /user name and password/ });
  for (const wrong of [{ password: "wrong" }, { username: "else" }]) {
    const locks = etcd.locks({ ...user, ...wrong });
    await assert.rejects(locks.acquire("a"), (error: Error) => {
      assert.match(error.message, /user name and password/);
      assert.ok(!JSON.stringify(error).includes("wrong"), "no password in an error");
      return true;
    });
  }
});

test("a client fetches a new token from a server that forgot its tokens, and loses no lease", async () => {
  const [leases, calls, ttlMs] = [100, 400, 30_000];
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  await enableUsers(etcd);
  const [relay] = await etcd.relays();
  const endpoints = [`127.0.0.1:${relay!.port}`];
  const locks = etcd.locks({ endpoints, username: "app", password: SECRET });
  const names = Array.from({ length: leases }, (_, i) => `held-${i}`);
  const held = await Promise.all(names.map((name) => locks.acquire(name, { ttlMs })));
  relay!.cut();
  await server.restart();
  const acquiring = Promise.allSettled(
    Array.from({ length: calls }, (_, i) =>
      locks.acquire(`new-${i}`, { ttlMs, callTimeoutMs: 20_000 }),
    ),
  );
  // By then all calls have failed once, and are repeated with the old token.
  await sleep(500);
  relay!.mend();
  const answers = await acquiring;
  // The server counts from its restart.
  const authentications = await etcd.calls("Authenticate");
  assert.ok(authentications <= 3, `${authentications} authentications`);
  assert.ok(answers.every(({ status }) => status === "fulfilled"));
  await Promise.all(held.map((lease) => lease.renew()));
  assert.equal(held.filter((lease) => lease.held).length, leases);
});

test("an authentication without an answer is tried again while the leases live", async () => {
  const ttlMs = 8_000;
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  await enableUsers(etcd);
  await using relay = await new HoldingRelay(server.port).start();
  const endpoints = [relay.endpoint];
  const locks = etcd.locks({ endpoints, username: "app", password: SECRET });
  const names = Array.from({ length: 20 }, (_, i) => `held-${i}`);
  const held = await Promise.all(names.map((name) => locks.acquire(name, { ttlMs })));
  // As on a connection that broke in silence.
  relay.holdAnswers("/v3/auth/authenticate");
  await forgetTokens(server.port);
  const asked = locks.inspect("held-0");
  for (let looks = 0; relay.held === 0 && looks < 1_000; looks++) await sleep(5);
  relay.stopHolding();
  await asked;
  await sleep(ttlMs);
  assert.equal(held.filter((lease) => lease.held).length, held.length);
});

/** A new password ends all tokens of the user, as a restart does. */
async function forgetTokens(port: number): Promise<void> {
  const ask = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const request = { method: "POST", body: JSON.stringify(body), headers };
    const answer = await fetch(`http://127.0.0.1:${port}/v3/auth/${path}`, request);
    assert.equal(answer.status, 200, path);
    return (await answer.json()) as { readonly token: string };
  };
  const { token } = await ask("authenticate", { name: "root", password: SECRET });
  await ask("user/changepw", { name: "app", password: SECRET }, { authorization: token });
}

test("a user name for an etcd without users is an error that says so", async () => {
  await using server = await startEtcd();
  await using etcd = new EtcdTestServer(server);
  const locks = etcd.locks({ username: "app", password: SECRET });
  await assert.rejects(locks.acquire("a"), { code: "ENGINE", message: /no authentication/ });
});

test("a client connects over TLS with a private certificate authority", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-tls-"));
  const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  try {
    const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    const files = ["-keyout", keyFile, "-out", certFile];
    const kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    execFileSync("openssl", ["req", ...kind, "-days", "2", ...subject, ...files], {
      stdio: "pipe",
    });
    await using server = await startEtcd({ tls: { certFile, keyFile } });
    await using etcd = new EtcdTestServer(server);
    const tls = { ca: readFileSync(certFile) };
    await useEveryVerb(etcd, etcd.locks({ tls }), etcd.locks({ tls }));
    const trusting = etcd.locks({ tls: true });
    await assert.rejects(trusting.acquire("a", { callTimeoutMs: 5_000 }), {
      code: "ENGINE",
      effect: "none",
      message: /self.signed/,
    });
    const plain = etcd.locks();
    await assert.rejects(plain.acquire("a", { callTimeoutMs: 5_000 }), { code: "ENGINE" });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("connect names a server that does not answer, without the password", async () => {
  const url = "etcd://app:secret@127.0.0.1:1";
  await assert.rejects(connect(url), (error: Error) => {
    assert.match(error.message, /no answer from etcd at 127\.0\.0\.1:1: .*ECONNREFUSED/);
    assert.ok(!error.message.includes("secret"));
    return true;
  });
});

test("URLs and options are read as documented, and wrong ones are refused", () => {
  const url = "etcd://app:p%40ss@h1,h2:22379,[::1]:5?tls=true&prefix=locks/";
  assert.deepEqual(termsFromUrl(parseEngineUrl(url)), {
    endpoints: [
      { host: "h1", port: 2379 },
      { host: "h2", port: 22379 },
      { host: "::1", port: 5 },
    ],
    prefix: "locks/",
    user: { name: "app", password: "p@ss" },
    tls: {},
  });
  assert.deepEqual(resolveEtcd({ endpoints: ["h"] }), {
    endpoints: [{ host: "h", port: 2379 }],
    prefix: "holdfast/",
    user: null,
    tls: null,
  });
  for (const wrong of ["etcd://", "etcd://h/path", "etcd://h?tls=yes", "etcd://h?ttl=1"]) {
    assert.throws(() => termsFromUrl(parseEngineUrl(wrong)), UsageError, wrong);
  }
  for (const wrong of [
    { endpoints: [] },
    { endpoints: ["http://h:1"] },
    { endpoints: ["h"], prefix: "50%" },
    { endpoints: ["h"], username: "app" },
  ]) {
    assert.throws(() => etcdEngine(wrong), UsageError, JSON.stringify(wrong));
  }
});

/** Uses every verb once. */
async function useEveryVerb(etcd: EtcdTestServer, a: Locks, b: Locks): Promise<void> {
  const lease = await a.acquire("life", { lockDelayMs: 1_000 });
  const waiting = b.acquire("life", { waitMs: 20_000 });
  await etcd.untilWaiters(a, "life", 1);
  await lease.renew({ ttlMs: 40_000 });
  assert.equal(await b.check(lease.sequencer), true);
  const names = [];
  for await (const { resource } of b.list()) names.push(resource);
  assert.deepEqual(names, ["life"]);
  assert.equal(await lease.release(), "released");
  const next = await waiting;
  const lost = lossOf(next);
  assert.equal(await a.revoke("life", { token: next.token }), "revoked");
  assert.equal(await lost, "revoked");
  assert.equal(await next.release(), "gone");
  const [one, other] = await Promise.all(
    [a, b].map((locks) => locks.acquire("pair", { mode: "shared", limit: 2 })),
  );
  assert.equal(await a.revoke("pair", { token: one!.token, force: true }), "revoked");
  assert.equal(await other!.release(), "released");
  const controller = new AbortController();
  const held = await a.acquire("life");
  const given = b.acquire("life", { signal: controller.signal });
  await etcd.untilWaiters(a, "life", 1);
  controller.abort(new Error("enough"));
  await assert.rejects(given, /enough/);
  assert.equal(await held.release(), "released");
}
