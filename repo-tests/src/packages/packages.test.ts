// What npm publishes: everything that a user needs, and nothing that only we need.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, normalize } from "node:path";
import { after, test } from "node:test";
import { assertNone } from "../findings.js";
import { relativeLinks } from "../links.js";
import { LIBRARY, read, shippedSources } from "../repo-files.js";
import { unpackInto } from "./packed.js";

const PACKAGES = {
  "packages/holdfast": ["CHANGELOG.md", "LICENSE", "README.md", "README.zh-CN.md"],
  "packages/cli": ["LICENSE", "README.md"],
};
const FOR_US = /test\.|\.fixture|\.child|wrong-engines|tsbuildinfo/;
const CODE = /^dist\/.+(\.js|\.js\.map|\.d\.ts)$/;
const PAGE = /^docs\/.+\.md$/;

const folder = mkdtempSync(join(tmpdir(), "packages-"));
after(() => rmSync(folder, { recursive: true }));

for (const [path, ownPages] of Object.entries(PACKAGES)) {
  const unpacked = join(folder, path);
  const files = unpackInto(unpacked, path);
  const text = (file: string) => readFileSync(join(unpacked, file), "utf8");

  test(`${path} holds its code, its pages, readme and licence, and nothing else`, () => {
    const rest = files.filter((file) => !CODE.test(file) && !PAGE.test(file));
    assert.deepEqual(rest, [...ownPages, "package.json"]);
    assert.deepEqual(
      files.filter((file) => FOR_US.test(file)),
      [],
    );
    assert.ok(files.some((file) => PAGE.test(file)));
    assert.equal(text("LICENSE"), read("LICENSE"));
  });

  test(`${path} says what it is on its page of the registry`, () => {
    const manifest = JSON.parse(text("package.json")) as Record<string, unknown>;
    assert.equal(manifest.license, "MIT");
    assert.ok(read("LICENSE").includes(`Copyright (c) 2026 ${manifest.author}\n`));
    assert.deepEqual(manifest.engines, { node: ">=20.19" });
    assert.ok(typeof manifest.description === "string" && manifest.description.length > 20);
    assert.ok(Array.isArray(manifest.keywords) && manifest.keywords.length > 5);
  });

  test(`${path}: every source map brings the source that it speaks of`, () => {
    const maps = files.filter((file) => file.endsWith(".map"));
    assert.ok(maps.length > 0);
    const bare = maps.filter((file) => {
      const { sources, sourcesContent = [] } = JSON.parse(text(file)) as {
        sources: string[];
        sourcesContent?: (string | null)[];
      };
      return sources.some((_, at) => typeof sourcesContent[at] !== "string");
    });
    assert.deepEqual(bare, []);
  });

  test(`${path}: links between its pages lead to files that it holds`, () => {
    const broken = files
      .filter((file) => file.endsWith(".md"))
      .flatMap((file) =>
        relativeLinks(text(file))
          .map((link) => link.split("#")[0] ?? "")
          .filter((link) => link !== "" && !files.includes(normalize(join(file, "..", link))))
          .map((link) => `${file} links to ${link}`),
      );
    assert.deepEqual(broken, []);
  });

  test(`${path}: its pages name nothing that only the repository has`, () => {
    const ours =
      /\bnpm (start|test|run)\b|(?<!sample: )\bexamples\/src\/|CONTRIBUTING|decisions\/|<!-- \/?repository/;
    const lines = files
      .filter((file) => file.endsWith(".md") && file !== "CHANGELOG.md")
      .flatMap((file) =>
        text(file)
          .split("\n")
          .map((line) => `${file}: ${line}`),
      )
      .filter((line) => ours.test(line) && !line.includes("<!-- compatibility"));
    assertNone(lines, "leave it out, or put it between the marks <!-- repository -->");
  });

  test(`${path}: a page that a message names is where the message says`, () => {
    const named = shippedSources(path === "packages/holdfast" ? LIBRARY : `${path}/src`).flatMap(
      (source) => [
        ...read(source).matchAll(
          /([\w/@-]*docs\/[\w/-]+\.md)( of th(e package holdfast|is package))?/g,
        ),
      ],
    );
    if (path === "packages/holdfast") assert.ok(named.length > 0);
    // A message must also name the package, because with npx the user does not know its folder.
    const lost = named.filter(([, page = "", of]) => of === undefined || !files.includes(page));
    const todo = "name a page that is packed, and its package: docs/….md of the package holdfast";
    const texts = lost.map(([text]) => text);
    assertNone(texts, todo);
  });
}
