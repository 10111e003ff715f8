// What a package shows its users: readme, licence and pages, copied beside its code when npm packs it.
// They have one place in the repository. What only somebody who has that can use stays there: paragraphs
// between <!-- repository --> and its end, and a ([why](…)) that leads there. Any other link to what is not
// packed becomes its text.
import "./node-version.mjs";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { isMain, SetupError, script } from "./script.mjs";
import { filesBelow, root, stateFolder } from "./workspace.mjs";

const FOR_AUTHORS = /^docs\/(decisions\/|benchmarks\.md|api\.txt)/;
// Code, in which brackets are no link; or a link.
const CODE_OR_LINK = /^(```|~~~)[\s\S]*?^\1|`[^`\n]*`|\[([^\]]*)\]\(([^)\s]+)\)/gm;
const OF_THE_REPOSITORY = /^<!-- repository -->\n[\s\S]*?^<!-- \/repository -->\n*/gm;
const BESIDES = /\s\(\[[^\]]*\]\(([^)\s]+)\)\)/g;

/** The pages of each package, by the path that they have in the repository and in the package. */
export const PAGES = {
  "packages/holdfast": [
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "README.zh-CN.md",
    ...filesBelow("docs").filter((path) => !FOR_AUTHORS.test(path)),
  ],
  "packages/cli": ["LICENSE", "docs/command-line.md"],
};

function copyPages(folder) {
  const pages = PAGES[folder];
  if (pages === undefined) throw new SetupError(`${folder} is no package that has pages`);
  for (const path of filesBelow(`${folder}/docs`)) {
    if (!pages.includes(relative(folder, path))) rmSync(join(root, path));
  }
  for (const page of pages) {
    const text = readFileSync(join(root, page), "utf8");
    write(join(root, folder, page), page.endsWith(".md") ? linkedWithin(pages, page, text) : text);
  }
}

function linkedWithin(pages, page, markdown) {
  const leadsSomewhere = (link) =>
    /^([a-z]+:|#)/i.test(link) ||
    pages.includes(normalize(join(dirname(page), link.split("#")[0])));
  return markdown
    .replace(OF_THE_REPOSITORY, "")
    .replace(BESIDES, (whole, link) => (leadsSomewhere(link) ? whole : ""))
    .replace(CODE_OR_LINK, (whole, _, text, link) =>
      link === undefined || leadsSomewhere(link) ? whole : text,
    );
}

/** Whole or not at all: two packings may be under way at once. */
function write(path, text) {
  if (existsSync(path) && readFileSync(path, "utf8") === text) return;
  for (const folder of [dirname(path), stateFolder]) mkdirSync(folder, { recursive: true });
  const draft = join(stateFolder, `page.${process.pid}`);
  writeFileSync(draft, text);
  renameSync(draft, path);
}

if (isMain(import.meta.url)) await script(() => copyPages(relative(root, process.cwd())));
