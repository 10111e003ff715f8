import assert from "node:assert";
import type { ListPage, ResourceView } from "../../engine.js";
import type { Client } from "../client.js";
import { law } from "../law.js";
import { NASTY_NAMES } from "./names.js";

const MOST_PAGES = 1_000;

async function listed(client: Client, match: string, max: number): Promise<ResourceView[]> {
  const views: ResourceView[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page: ListPage = await client.list({ match, cursor, max });
    assert(page.views.length <= max, `a page of ${page.views.length} where ${max} were asked for`);
    views.push(...page.views);
    cursor = page.cursor;
    if (cursor === null) return views;
  }
  assert.fail("the listing does not end");
}

const namesOf = (views: readonly ResourceView[]) => views.map((view) => view.resource).sort();

export const listingLaws = [
  law(
    "L9.6",
    "a listing returns every name once and unchanged, for any page size",
    [],
    async (s) => {
      const a = await s.client();
      for (const name of NASTY_NAMES) await a.take(name);
      const expected = [...NASTY_NAMES].sort();
      for (const max of [1_000, 7, 1]) {
        assert.deepEqual(namesOf(await listed(a, "*", max)), expected, `pages of ${max}`);
      }
    },
  ),

  law("L9.7", "a glob knows star and question mark, and no other syntax", [], async (s) => {
    const a = await s.client();
    const names = [
      "ab",
      "aB",
      "Ab",
      "a:b",
      "axb",
      "a🔒b",
      "a\nb",
      "a%b",
      "a_b",
      "a[x]b",
      "a.b",
      "a\\b",
      "b",
    ];
    for (const name of names) await a.take(name);
    const matches = async (match: string, ...expected: string[]) =>
      assert.deepEqual(namesOf(await listed(a, match, 3)), expected.sort(), JSON.stringify(match));
    await matches("a*b", ...names.filter((name) => /^a.*b$/s.test(name)));
    await matches("a?b", ...["a:b", "axb", "a🔒b", "a\nb", "a%b", "a_b", "a.b", "a\\b"]);
    await matches("a???b", "a[x]b");
    await matches("ab", "ab");
    await matches("A*", "Ab");
    await matches("a%b", "a%b");
    await matches("a_b", "a_b");
    await matches("a.b", "a.b");
    await matches("a[x]b", "a[x]b");
    await matches("a\\b", "a\\b");
    await matches("?", "b");
    await matches("nothing*");
    await matches("*", ...names);
  }),

  law("L9.8", "a listing shows the holders, and not what was released", [], async (s) => {
    const [a, b] = await s.clients(2);
    const [held, over] = [s.resource("held"), s.resource("over")];
    const one = await a!.take(held, { label: "holder" });
    await b!.releaseHeld((await b!.take(over)).claim);
    const [view, ...others] = await listed(b!, "*", 10);
    assert.deepEqual([view!.resource, others], [held, []]);
    assert.deepEqual(
      view!.holders.map(({ label, token, mode }) => [label, token, mode]),
      [["holder", one.token, "exclusive"]],
    );
  }),

  law("L9.9", "a listing shows who waits", ["queue"], async (s) => {
    const [a, b] = await s.clients(2);
    const resource = s.resource();
    await a!.take(resource);
    const waiter = await b!.wait(resource, { label: "waiter" });
    const [view] = await listed(a!, "*", 10);
    assert.deepEqual(view!.waiters, [{ mode: "exclusive", label: "waiter", position: 0 }]);
    await b!.withdraw(waiter);
    assert.deepEqual((await listed(a!, "*", 10))[0]!.waiters, []);
  }),

  law("L9.10", "a listing does not show what has expired", [], async (s) => {
    const a = await s.client();
    const [short, kept] = [s.resource("short"), s.resource("kept")];
    await a.take(short, { ttlMs: s.lifeMs });
    await s.expire(short, s.lifeMs, a);
    const b = await s.client();
    await b.take(kept);
    assert.deepEqual(namesOf(await listed(b, "*", 10)), [kept]);
  }),
];
