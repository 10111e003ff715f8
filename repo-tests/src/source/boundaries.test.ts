import assert from "node:assert/strict";
import { test } from "node:test";
import { assertNone } from "../findings.js";
import {
  LIBRARY,
  read,
  repoFiles,
  resolveImport,
  shippedSources,
  workspaces,
} from "../repo-files.js";
import { type Import, importsOf } from "./source-text.js";

interface Edge extends Import {
  readonly from: string;
  readonly to: string;
}

// A quorum's nodes are Redis servers, so the quorum engine shares how they are reached and how keys
// are named. It has its own decisions: above all its own scripts.
const LENT_BY_REDIS = [
  ...["clients/address", "clients/connection", "clients/open", "notifications/notifications"],
  ...["protocol/failure", "protocol/keys", "protocol/shape"],
].map((name) => `/engines/redis/${name}.ts`);

// The rooms of core that a room may import, besides itself and the files at the root.
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  acquiring: ["calling", "holding", "runtime"],
  renewing: ["calling", "holding", "runtime"],
  calling: ["holding", "runtime"],
  input: [],
  runtime: [],
};
// `retry` takes options from users, and refuses unknown ones as every other function does.
const ROOM_EXCEPTIONS = ["core/acquiring/retry.ts imports core/input/known-options.ts"];

// What an engine needs: the contract and its errors and events, a URL's parts, time, the check of
// options, a peer package, and how a resource's name is checked.
const FOR_ENGINES = [
  ...["engine.ts", "errors.ts", "events.ts", "url.ts"],
  ...["core/acquiring/resource.ts", "core/input/import-peer.ts", "core/input/known-options.ts"],
  "core/runtime/clock.ts",
];
// The kit is handed everything by an engine, so it reads no URL, no option and no package.
const FOR_THE_KIT = [
  ...["engine.ts", "errors.ts", "events.ts"],
  ...["core/acquiring/resource.ts", "core/runtime/clock.ts", "core/runtime/generational-map.ts"],
];
// A fence inside the user's own transaction writes the sequencer that `check` reads.
const SEQUENCER = "fencing/sequencer.ts";
const WRITES_SEQUENCERS = /^(engines\/(mysql|postgres)|engine-kit\/sql)\/transaction\.ts$/;

const MOVE = "imports go one way, as CONTRIBUTING.md says; move what is shared";

const edges = edgesOf(shippedSources(LIBRARY));

test("recipes import no engine", () => {
  refuse((edge) => isIn(edge.from, "recipes") && isIn(edge.to, "engines"));
});

test("an engine imports neither another engine nor a recipe", () => {
  refuse((edge) => {
    const engine = engineOf(edge.from);
    if (engine === null) return false;
    const other = engineOf(edge.to);
    const lent = engine === "quorum" && LENT_BY_REDIS.some((file) => edge.to.endsWith(file));
    return isIn(edge.to, "recipes") || (other !== null && other !== engine && !lent);
  });
});

test("only connect.ts and init.ts import engines, and only when a caller asks for one", () => {
  refuse((edge) => {
    if (isIn(edge.from, "engines") || !isIn(edge.to, "engines")) return false;
    const doors = [`${LIBRARY}/connect.ts`, `${LIBRARY}/init.ts`];
    return !(doors.includes(edge.from) && edge.dynamic);
  });
});

test("core imports neither recipes nor engines nor what engines share", () => {
  const outside = ["recipes", "engines", "engine-kit", "conformance", "testing"];
  refuse((edge) => isIn(edge.from, "core") && outside.some((folder) => isIn(edge.to, folder)));
});

for (const [room, others] of Object.entries(ROOMS)) {
  test(`core/${room} imports of core only ${[room, ...others].join(", ")}`, () => {
    const allowed = [room, ...others].map((name) => `core/${name}`);
    refuse((edge) => {
      if (!isIn(edge.from, `core/${room}`) || !isIn(edge.to, "core")) return false;
      if (ROOM_EXCEPTIONS.includes(`${inside(edge.from)} imports ${inside(edge.to)}`)) return false;
      return !allowed.some((folder) => isIn(edge.to, folder));
    });
  });
}

test("an engine imports of the library only its kit and what the contract needs", () => {
  const todo = `an engine may import its own folder, engine-kit/, ${FOR_ENGINES.join(", ")}`;
  refuse((edge) => isIn(edge.from, "engines") && !isOpenTo(edge, FOR_ENGINES), todo);
});

test("engine-kit imports no engine, and of the library only what the contract needs", () => {
  refuse((edge) => isIn(edge.from, "engine-kit") && isIn(edge.to, "engines"));
  refuse((edge) => isIn(edge.from, "engine-kit") && !isOpenTo(edge, FOR_THE_KIT));
});

test("every exception to an import rule is still needed", () => {
  const found = edges.map((edge) => `${inside(edge.from)} imports ${inside(edge.to)}`);
  assert.deepEqual(
    ROOM_EXCEPTIONS.filter((exception) => !found.includes(exception)),
    [],
  );
  for (const [folder, open] of [
    ["engines", FOR_ENGINES],
    ["engine-kit", FOR_THE_KIT],
  ] as const) {
    const used = edges.filter(({ from }) => isIn(from, folder)).map(({ to }) => inside(to));
    assert.deepEqual(
      open.filter((path) => !used.includes(path)),
      [],
      folder,
    );
  }
});

test("no verb of the command line imports another verb", () => {
  const verbs = "packages/cli/src/verbs/";
  const verbOf = (path: string) => /^[a-z]+/.exec(path.slice(verbs.length))?.[0];
  const found = edgesOf(shippedSources("packages/cli/src")).filter(({ from }) =>
    from.startsWith(verbs),
  );
  assert.ok(found.length > 0);
  const between = found.filter(
    ({ from, to }) => to.startsWith(verbs) && verbOf(from) !== verbOf(to),
  );
  assert.deepEqual(between.map(show), []);
});

test("engine.ts, the contract, imports nothing", () => {
  refuse((edge) => edge.from === `${LIBRARY}/engine.ts`);
});

test("the front door only re-exports: names, and the types of the contract", () => {
  const rest = read(`${LIBRARY}/index.ts`)
    .replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, "")
    .replace(/export type \* from "\.\/engine\.js";/, "")
    .replace(/export\s+(type\s+)?\{[^}]*\}\s*from\s*"[^"]+";/g, "");
  assert.equal(rest.trim(), "");
});

test("no relative import leaves its own package", () => {
  const leaving = workspaces().flatMap((folder) =>
    edgesOf(repoFiles(`${folder}/src`).filter((path) => path.endsWith(".ts"))).filter(
      (edge) => edge.specifier.startsWith(".") && !edge.to.startsWith(`${folder}/src/`),
    ),
  );
  assert.deepEqual(leaving.map(show), []);
});

function edgesOf(paths: readonly string[]): Edge[] {
  return paths.flatMap((from) =>
    importsOf(read(from)).map((found) => ({
      ...found,
      from,
      to: found.specifier.startsWith(".") ? resolveImport(from, found.specifier) : found.specifier,
    })),
  );
}

function refuse(forbidden: (edge: Edge) => boolean, todo = MOVE): void {
  // Without any edge the scan is broken, and every rule would hold by accident.
  assert.ok(edges.length > 0);
  assertNone(edges.filter(forbidden).map(show), todo);
}

function show(edge: Edge): string {
  return `${edge.from} imports ${edge.specifier}`;
}

function isIn(path: string, folder: string): boolean {
  return path.startsWith(`${LIBRARY}/${folder}/`);
}

/** A path inside the library, without the folder that all have in common. */
function inside(path: string): string {
  return path.startsWith(`${LIBRARY}/`) ? path.slice(LIBRARY.length + 1) : path;
}

/** Whether an engine or its kit may have this import. Other engines are another test's concern. */
function isOpenTo({ from, to }: Edge, open: readonly string[]): boolean {
  if (!to.startsWith(`${LIBRARY}/`) || isIn(to, "engines") || isIn(to, "engine-kit")) return true;
  if (inside(to) === SEQUENCER) return WRITES_SEQUENCERS.test(inside(from));
  return open.includes(inside(to));
}

function engineOf(path: string): string | null {
  return isIn(path, "engines") ? (path.split("/")[4] ?? null) : null;
}
