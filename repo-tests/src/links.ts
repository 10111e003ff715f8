// Links of Markdown, and the anchors that headings become on GitHub.

// Links and images, inline or by reference. Code is cut out before.
const LINK = /\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)|^\[[^\]]+\]:\s*(\S+)/gm;
const CODE = /^(```|~~~)[\s\S]*?^\1|`[^`\n]*`/gm;

/** The links of a page that lead to a file beside it or to one of its own headings. */
export function relativeLinks(markdown: string): string[] {
  return [...markdown.replace(CODE, "").matchAll(LINK)]
    .map((match) => match[1] ?? match[2] ?? "")
    .filter((link) => !/^[a-z]+:/i.test(link));
}

export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const headings = markdown.replace(/^(```|~~~)[\s\S]*?^\1/gm, "").matchAll(/^#{1,6} +(.+)$/gm);
  for (const [, heading = ""] of headings) {
    const slug = heading
      .trim()
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}\s_-]/gu, "")
      .replace(/\s/g, "-");
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}
