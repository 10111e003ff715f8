import type { LawGroup, Need } from "./harness.js";

const START = "<!-- laws: written by the suite; see packages/holdfast/src/conformance -->";
const END = "<!-- end of laws -->";

const NEEDS: Record<Need, string> = {
  age: "ageing",
  tombstones: "ageing tombstones",
  sever: "cutting",
  restart: "restarts",
  url: "processes",
  queue: "queue",
  watch: "watch",
  shared: "shared mode",
  limits: "limits",
  lockDelay: "lock-delay",
  range: "token ranges",
  leave: "grants that can be left",
  ttl: "a ttl of each grant",
  truth: "the record",
  silence: "silencing waiters",
  relay: "a relay",
  misanswer: "wrong answers",
  survival: "several servers",
  serverTime: "measuring the server",
};

/** The laws as the page for engine authors shows them. */
export function lawsAsMarkdown(groups: readonly LawGroup[]): string {
  const sections = groups.map(({ id, name, text, laws }) => {
    const lines = laws.map((law) => {
      const needs = law.needs.map((need) => NEEDS[need]).join(", ");
      return `- **${law.id}** ${law.title}${needs === "" ? "" : ` *(${needs})*`}`;
    });
    return [`### ${id} ${name}`, "", text, "", ...lines].join("\n");
  });
  return sections.join("\n\n");
}

/** The page with its list of laws replaced by the current one. */
export function withLaws(page: string, groups: readonly LawGroup[]): string {
  const [start, end] = [page.indexOf(START), page.indexOf(END)];
  if (start < 0 || end < start) throw new Error(`the page has no "${START}" … "${END}"`);
  const before = page.slice(0, start + START.length);
  return `${before}\n\n${lawsAsMarkdown(groups)}\n\n${page.slice(end)}`;
}
