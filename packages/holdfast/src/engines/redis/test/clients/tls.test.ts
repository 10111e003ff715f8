// Servers that speak only TLS, with a certificate from our own authority.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensure, freePorts, ServerProcess, startRedis } from "@holdfast/servers";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { connect } from "../../../../connect.js";
import { Locks } from "../../../../locks.js";
import { until } from "../../../../test-support/until.fixture.js";
import { type RedisClient, redisEngine } from "../../index.js";

const run = promisify(execFile);
const FIXTURE = fileURLToPath(new URL("../support/one-life.child.js", import.meta.url));

let folder: string;
let ca: string;
let port: number;
let sentinelPort: number;
const servers: ServerProcess[] = [];

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tls-"));
  await makeCertificates();
  ca = readFileSync(join(folder, "ca.crt"), "utf8");
  [port, sentinelPort] = (await freePorts(2)) as [number, number];
  await start(port, ["--save", ""]);
  // A Sentinel connects to servers with TLS if replication uses TLS.
  const watched = join(folder, "sentinel.conf");
  await run("sh", ["-c", `echo 'sentinel monitor main 127.0.0.1 ${port} 1' > ${watched}`]);
  await start(sentinelPort, ["--sentinel"], watched);
});
after(async () => {
  await Promise.all(servers.map((server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
});

describe("TLS", () => {
  it("the error for a server without TLS says that it may not speak TLS", async () => {
    await using plain = await startRedis();
    for (const url of [
      `rediss://127.0.0.1:${plain.port}`,
      `redis://127.0.0.1:${plain.port}?tls=true`,
    ]) {
      await assert.rejects(connect(url), {
        ...{ code: "ENGINE", effect: "none", reason: "unreachable" },
        message: /no Redis at 127\.0\.0\.1:\d+: .*; perhaps it does not speak TLS/,
      });
    }
  });

  it("a server whose certificate nobody trusts is refused, with the reason", async () => {
    await assert.rejects(connect(`rediss://127.0.0.1:${port}`), {
      ...{ code: "ENGINE", effect: "none" },
      message: /no Redis at 127\.0\.0\.1:\d+: [^;]*certificate[^;]*$/,
    });
  });

  for (const url of [
    "rediss://PORT",
    "redis://PORT?tls=true",
    "redis+sentinel://SENTINEL/main?tls=true",
  ]) {
    it(`${url} works for a process that trusts the authority`, async () => {
      const real = url
        .replace("PORT", `127.0.0.1:${port}`)
        .replace("SENTINEL", `127.0.0.1:${sentinelPort}`);
      const env = { ...process.env, NODE_EXTRA_CA_CERTS: join(folder, "ca.crt") };
      const { stdout } = await run(process.execPath, [FIXTURE, real], { env, timeout: 20_000 });
      assert.equal(stdout.trim(), "released");
    });
  }

  it("a user's own client uses its own trusted authorities", async () => {
    const ioredis = new Redis({ port, host: "127.0.0.1", tls: { ca } });
    const nodeRedis = createClient({ socket: { host: "127.0.0.1", port, tls: true, ca } });
    nodeRedis.on("error", () => {});
    await nodeRedis.connect();
    try {
      for (const client of [ioredis, nodeRedis as unknown as RedisClient]) {
        await using locks = new Locks(redisEngine({ client }));
        const lease = await locks.acquire("a");
        const waiting = locks.acquire("a", { fair: "strict" });
        await until("it waits", async () => (await locks.inspect("a")).waiters.length === 1);
        await lease.release();
        await (await waiting).release();
      }
    } finally {
      ioredis.disconnect();
      nodeRedis.destroy();
    }
  });
});

async function start(at: number, args: readonly string[], conf?: string): Promise<void> {
  const binary = ensure("redis-server");
  const files = ["cert-file", "key-file", "ca-cert-file"].map((kind, i) => [
    `--tls-${kind}`,
    join(folder, ["server.crt", "server.key", "ca.crt"][i]!),
  ]);
  const tls = [...files.flat(), "--tls-auth-clients", "no", "--tls-replication", "yes"];
  const ports = ["--port", "0", "--tls-port", String(at), "--bind", "127.0.0.1"];
  const server = new ServerProcess({
    name: "redis-tls",
    command: (own) => [binary, ...(conf ? [conf] : []), ...ports, "--dir", own, ...tls, ...args],
    probe: async () => {
      const client = new Redis({ port: at, host: "127.0.0.1", tls: { ca }, retryStrategy: null });
      client.on("error", () => {});
      await client.ping().finally(() => client.disconnect());
    },
  });
  servers.push(server);
  await server.start();
}

async function makeCertificates(): Promise<void> {
  const openssl = (...args: string[]) => run(ensure("openssl"), args, { cwd: folder });
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  await openssl(
    "req",
    "-x509",
    ...key,
    "-subj",
    "/CN=holdfast test authority",
    "-days",
    "2",
    "-keyout",
    "ca.key",
    "-out",
    "ca.crt",
  );
  await openssl(
    "req",
    ...key,
    "-subj",
    "/CN=127.0.0.1",
    "-addext",
    "subjectAltName=IP:127.0.0.1",
    "-keyout",
    "server.key",
    "-out",
    "server.csr",
  );
  await openssl(
    "x509",
    "-req",
    "-in",
    "server.csr",
    "-copy_extensions",
    "copy",
    "-days",
    "2",
    "-CA",
    "ca.crt",
    "-CAkey",
    "ca.key",
    "-CAcreateserial",
    "-out",
    "server.crt",
  );
}
