// URLs, options, rights and TLS, and what is refused before anything is sent.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createConnection, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { createServer, type Server } from "node:tls";
import { ensure } from "@holdfast/servers";
import { connect } from "../../../../connect.js";
import { EngineError, UsageError } from "../../../../errors.js";
import { now } from "../../../../test-support/call.fixture.js";
import { claim } from "../../../../test-support/claim.fixture.js";
import { zookeeperEngine } from "../../index.js";
import { fresh, ZookeeperTestServer } from "../support/test-server.fixture.js";

let zookeeper: ZookeeperTestServer;

before(async () => {
  zookeeper = await ZookeeperTestServer.start();
});

after(() => zookeeper[Symbol.asyncDispose]());

describe("access", { concurrency: 4 }, () => {
  it("a URL names servers, chroot and prefix, and the chroot is made", async () => {
    const chroot = `/${fresh("app")}/deep`;
    const unused = "127.0.0.1:1";
    await using locks = await connect(
      `zookeeper://${unused},${zookeeper.server.hosts}${chroot}?prefix=locks/v1-`,
    );
    const lease = await locks.acquire("a/b");
    assert.equal((await zookeeper.children(`${chroot}/locks/v1-a%2Fb`)).length, 1);
    const listed = [];
    for await (const view of locks.list()) listed.push(view.resource);
    assert.deepEqual(listed, ["a/b"]);
    assert.equal(await lease.release(), "released");
  });

  it("an unused name leaves no node behind", async () => {
    const chroot = `/${fresh("idle")}`;
    const locks = zookeeper.locks({ chroot });
    const names = Array.from({ length: 20 }, () => fresh());
    for (const name of names) await (await locks.acquire(name)).release();
    // This server looks every second. The default is every minute.
    for (let looks = 0; (await zookeeper.children("/")).includes(chroot.slice(1)); looks++) {
      assert.ok(looks < 100, "the containers are still there");
      await new Promise((go) => setTimeout(go, 100));
    }
  });

  it("the error for a server that does not answer names it and the cause", async () => {
    const error = await connect("zookeeper://user:secret@127.0.0.1:1").catch((e: unknown) => e);
    assert.ok(error instanceof EngineError && error.effect === "none");
    assert.match(error.message, /no ZooKeeper at 127\.0\.0\.1:1: .*ECONNREFUSED/);
    assert.doesNotMatch(error.message, /secret/);
  });

  for (const hold of ["session", "ttl"] as const) {
    it(`a call that reached no server says why, and that it did nothing, hold ${hold}`, async () => {
      const closing = createTcpServer((socket) => socket.destroy());
      await new Promise<void>((go) => closing.listen(0, "127.0.0.1", go));
      closing.unref();
      const { port } = closing.address() as { port: number };
      for (const [hosts, why] of [
        ["127.0.0.1:1", /ECONNREFUSED/],
        // A server closes connections beyond maxClientCnxns in the same way.
        [`127.0.0.1:${port}`, /closed the connection|ECONNRESET/],
      ] as const) {
        const locks = zookeeper.locks({ hosts, hold });
        // The engine gives up a tenth of the time earlier, so its error comes in time.
        const calling = [0, 8_000].map((waitMs) =>
          locks.acquire(fresh(), { waitMs, callTimeoutMs: 8_000 }).catch((e: unknown) => e),
        );
        for (const error of await Promise.all(calling)) {
          assert.ok(error instanceof EngineError, String(error));
          assert.match(error.message, why);
          assert.deepEqual([error.effect, error.retryable], ["none", true]);
          assert.ok(error.cause instanceof Error);
        }
        await locks.close();
      }
    });
  }

  for (const [what, url, message] of [
    ["no host", "zookeeper:///a", /needs a host/],
    ["an unknown parameter", "zookeeper://h?ttl=1", /no parameter "ttl"/],
    ["a prefix that begins with a slash", "zookeeper://h?prefix=/a", /prefix is "\/a"/],
    ["a chroot with an empty step", "zookeeper://h/a//b", /chroot is "\/a\/\/b"/],
    ["a chroot that climbs", "zookeeper://h/a/../b", /chroot is/],
    ["an unknown layout", "zookeeper://h?layout=java", /layout is "java"/],
    ["rights of a creator who has no name", "zookeeper://h?acl=creator", /needs a username/],
    ["files for TLS without TLS", "zookeeper://h?tlsCa=x", /without tls=true/],
    ["a file for TLS that is not there", "zookeeper://h?tls=true&tlsCa=/nowhere", /cannot be read/],
  ] as const) {
    it(`${what} is refused before anything is sent`, async () => {
      await assert.rejects(connect(url), (error: unknown) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, message);
        return true;
      });
    });
  }

  it("hosts must be named, and a password goes with a user", () => {
    assert.throws(() => zookeeperEngine({ hosts: "" }), UsageError);
    assert.throws(() => zookeeperEngine({ hosts: "h", username: "u" }), UsageError);
    assert.throws(() => zookeeperEngine({ hosts: "h:99999" }), UsageError);
  });

  it("a user with the needed rights can do everything, and others can do nothing", async () => {
    const chroot = `/${fresh("closed")}`;
    // create and read on the chroot, and nothing else. All nodes below belong to their creator.
    const python = ensure("kazoo");
    execFileSync(python, [
      "-c",
      `
from kazoo.client import KazooClient
from kazoo.security import make_digest_acl
zk = KazooClient(hosts="${zookeeper.server.hosts}")
zk.start()
zk.create("${chroot}", b"", acl=[make_digest_acl("app", "s:ecret", create=True, read=True)])
zk.stop()`,
    ]);
    const credentials = { username: "app", password: "s:ecret" };
    const [ours, other] = [
      zookeeper.locks({ chroot, ...credentials }),
      zookeeper.locks({ chroot, ...credentials }),
    ];
    const lease = await ours.acquire("a", { ttlMs: 5_000, lockDelayMs: 50 });
    await lease.renew();
    const waiting = other.acquire("a", { waitMs: 10_000 });
    await zookeeper.untilWaiters(ours, "a", 1);
    assert.equal(await other.check(lease.sequencer), true);
    assert.equal(await other.revoke("a", { token: lease.token }), "revoked");
    await lease.release();
    const next = await waiting;
    const listed = [];
    for await (const view of ours.list()) listed.push(view.resource);
    assert.deepEqual(listed, ["a"]);
    await next.release();
    for (const options of [{}, { username: "app", password: "wrong" }]) {
      const stranger = zookeeper.engine({ chroot, ...options });
      await assert.rejects(stranger.tryAcquire(claim("a"), now()), (error: unknown) => {
        assert.ok(error instanceof EngineError && error.effect === "none" && !error.retryable);
        assert.match(error.message, /may not do what locks need/);
        assert.doesNotMatch(error.message, /wrong/);
        return true;
      });
    }
  });

  it("everything works over TLS, with the server's certificate checked", async () => {
    const folder = mkdtempSync(join(tmpdir(), "zk-tls-"));
    try {
      const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
      const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
      const kind = ["-newkey", "rsa:2048", "-nodes", "-days", "2"];
      const files = ["-keyout", key, "-out", cert];
      execFileSync("openssl", ["req", "-x509", ...kind, ...files, ...subject], { stdio: "ignore" });
      const server = await terminator(readFileSync(key), readFileSync(cert));
      const { port } = server.address() as { port: number };
      {
        await using locks = await connect(
          `zookeeper://127.0.0.1:${port}?tls=true&tlsCa=${cert}&tlsServername=localhost`,
        );
        const lease = await locks.acquire(fresh(), { ttlMs: 3_000 });
        await lease.renew();
        assert.equal(await lease.release(), "released");
      }
      const distrusting = zookeeper.engine({ hosts: `127.0.0.1:${port}`, tls: true });
      await assert.rejects(distrusting.inspect("a", now(500)), EngineError);
      server.close();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** A proxy with TLS in front of the real server. */
async function terminator(key: Buffer, cert: Buffer): Promise<Server> {
  const server = createServer({ key, cert }, (client) => {
    const upstream = createConnection(zookeeper.server.port, "127.0.0.1");
    for (const socket of [client, upstream]) socket.on("error", () => {});
    client.pipe(upstream).pipe(client);
    client.on("close", () => upstream.destroy());
  });
  await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
  return server;
}
