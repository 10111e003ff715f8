import assert from "node:assert/strict";
import type { Claim } from "../../../../engine.js";
import { put } from "../../client/requests.js";
import { newRecord, writeRecord } from "../../queue/key-record.js";
import { Keys } from "../../queue/keys.js";
import type { EtcdTestServer } from "./test-server.fixture.js";

// etcd takes at most this many operations in one transaction.
const AT_ONCE = 128;
const TTL_S = 600;
const PREFIX = "holdfast/";

/** Makes holders of the names with these numbers, many in one request. */
export async function fill(
  testServer: EtcdTestServer,
  first: number,
  last: number,
  nameOf = (i: number) => `name-${i}`,
): Promise<void> {
  const post = async (path: string, body: object): Promise<{ readonly ID?: string }> => {
    const url = `http://${testServer.endpoints[0]}${path}`;
    const response = await fetch(url, { method: "POST", body: JSON.stringify(body) });
    assert.equal(response.status, 200, path);
    return (await response.json()) as { readonly ID?: string };
  };
  const { ID: lease = "" } = await post("/v3/lease/grant", { TTL: TTL_S });
  const keys = new Keys(PREFIX);
  const terms = { mode: "exclusive", limit: null, ttlMs: TTL_S * 1_000, lockDelayMs: 0 } as const;
  for (let from = first; from <= last; from += AT_ONCE) {
    const success = [];
    for (let i = from; i < Math.min(from + AT_ONCE, last + 1); i++) {
      const claim: Claim = {
        ...{ resource: nameOf(i), grantId: `grant-${i}`, ...terms, tokens: 1, label: "somebody" },
      };
      const record = writeRecord(newRecord(claim, "0123456789abcdef", true));
      success.push(put(keys.claimKey(claim.resource, claim.grantId), record, lease));
    }
    await post("/v3/kv/txn", { compare: [], success, failure: [] });
  }
}
