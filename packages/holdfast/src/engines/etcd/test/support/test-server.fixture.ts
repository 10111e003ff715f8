import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type EtcdServer, ensure, type Relay } from "@holdfast/servers";
import type { Locks } from "../../../../locks.js";
import { TestServer, untilWaiters } from "../../../../test-support/test-server.fixture.js";
import { type EtcdEngineOptions, type EtcdLocks, etcdEngine } from "../../index.js";

export type OpenOptions = Partial<EtcdEngineOptions>;

/** Clients of some servers, closed together. The test that started the servers stops them. */
export class EtcdTestServer extends TestServer {
  readonly servers: readonly EtcdServer[];
  readonly untilWaiters = untilWaiters;

  constructor(...servers: EtcdServer[]) {
    super();
    this.servers = servers;
  }

  get endpoints(): string[] {
    return this.servers.map(({ port }) => `127.0.0.1:${port}`);
  }

  engine(options: OpenOptions = {}): EtcdLocks {
    return this.closesEngine(etcdEngine({ endpoints: this.endpoints, ...options }));
  }

  /** A connection of its own, as in another process. */
  locks(options: OpenOptions = {}): Locks {
    return this.locksOn(this.engine(options));
  }

  /** A relay to each server. */
  relays(): Promise<Relay[]> {
    return Promise.all(this.servers.map(({ port }) => this.relayTo(port)));
  }

  /** What etcdctl prints. */
  async ctl(...args: string[]): Promise<string> {
    const { file, env, endpoints } = this.ctlCommand();
    const { stdout } = await promisify(execFile)(file, [endpoints, ...args], { env });
    return stdout.trim();
  }

  /** The etcd leases of the keys of a resource, as decimal numbers. The oldest key comes first. */
  async leasesIn(resource: string, kind: "h" | "~" = "h"): Promise<string[]> {
    const key = `holdfast/${resource}/${kind}`;
    const json = await this.ctl("get", "--prefix", "--sort-by=CREATE", key, "-w", "json");
    // Not parsed: as numbers they would be rounded.
    return [...json.matchAll(/"lease":(\d+)/g)].map(([, id]) => id!);
  }

  /** The etcd lease of the key, or of the marker, of the holder of a resource. */
  async leaseOf(resource: string, kind: "h" | "~" = "h"): Promise<string> {
    const [id] = await this.leasesIn(resource, kind);
    assert.ok(id !== undefined, `nobody holds ${resource}`);
    return id;
  }

  /** Through the gateway, which answers when a majority has revoked the lease. */
  async revoke(lease: string): Promise<void> {
    const url = `http://${this.endpoints.at(-1)}/v3/lease/revoke`;
    const response = await fetch(url, { method: "POST", body: JSON.stringify({ ID: lease }) });
    assert.equal(response.status, 200, await response.text());
  }

  ctlCommand(): { file: string; env: NodeJS.ProcessEnv; endpoints: string } {
    return {
      file: ensure("etcdctl"),
      env: { ...process.env, ETCDCTL_API: "3" },
      endpoints: `--endpoints=${this.endpoints.join(",")}`,
    };
  }

  /** A counter of the first server, summed over its labels. */
  async metric(pattern: RegExp): Promise<number> {
    const response = await fetch(`http://${this.endpoints[0]}/metrics`);
    const lines = (await response.text()).split("\n").filter((line) => pattern.test(line));
    return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  calls(method: string): Promise<number> {
    return this.metric(new RegExp(`^grpc_server_started_total.*grpc_method="${method}"`));
  }
}
